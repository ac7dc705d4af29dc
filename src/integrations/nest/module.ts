import {
  ConfigurableModuleBuilder,
  Module,
  type DynamicModule,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import { createClient, type CloseOptions, type LockClient } from '../../index.js';
import { checkBusyOptions, checkClient } from '../shared/route-checks.js';
import { HoldfastHealthIndicator } from './health-indicator.js';
import { getLockClientToken, lockProviders } from './inject.js';
import { LockTimeoutFilter } from './lock-timeout-filter.js';
import type { HoldfastModuleExtras, HoldfastModuleOptions } from './options.js';

const EXTRAS: HoldfastModuleExtras = { isGlobal: false, name: undefined, filter: undefined };

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<HoldfastModuleOptions>({
  moduleName: 'Holdfast',
})
  .setClassMethodName('forRoot')
  .setExtras(EXTRAS, withClient)
  .build();

/**
 * The module of NestJS. It provides a client for {@link InjectLockClient}, the locks of {@link InjectLock}, the client of
 * `@Locked`, a {@link HoldfastHealthIndicator}, and a filter that answers a `LockTimeoutError` with 423 or 409 and
 * `Retry-After`.
 *
 * The module closes the client in `onApplicationShutdown`: Nest calls that when the HTTP server has answered its requests.
 * Call `app.enableShutdownHooks()`, so that a signal of the process shuts the application down.
 *
 * @example
 * \@Module({
 *   imports: [
 *     HoldfastModule.forRootAsync({
 *       isGlobal: true,
 *       inject: [ConfigService],
 *       useFactory: (config: ConfigService) => ({ url: config.getOrThrow('REDIS_URL') }),
 *     }),
 *   ],
 * })
 * class AppModule {}
 */
export class HoldfastModule extends ConfigurableModuleClass {}
Module({})(HoldfastModule);

/** Owns the client, unless the application made it. Nest finds the hook by its name. */
class ClientHolder implements OnApplicationShutdown {
  readonly client: LockClient;
  readonly #close: (() => Promise<void>) | undefined;

  constructor({ client, close, ...given }: HoldfastModuleOptions) {
    this.client =
      client === undefined ? createClient(given as Parameters<typeof createClient>[0]) : checkClient(client);
    this.#close = client === undefined ? () => this.client.close(close satisfies CloseOptions | undefined) : undefined;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#close?.();
  }
}

function withClient(definition: DynamicModule, { isGlobal, name, filter }: HoldfastModuleExtras): DynamicModule {
  const client = getLockClientToken(name);
  const holder = `${client}:holder`;
  const providers: Provider[] = [
    ...(definition.providers ?? []),
    {
      provide: holder,
      useFactory: (options: HoldfastModuleOptions) => new ClientHolder(options),
      inject: [MODULE_OPTIONS_TOKEN],
    },
    { provide: client, useFactory: (held: ClientHolder) => held.client, inject: [holder] },
    {
      provide: HoldfastHealthIndicator,
      useFactory: (locks: LockClient) => new HoldfastHealthIndicator(locks),
      inject: [client],
    },
  ];
  // The filter is of the application: that of a second client would answer for the first one, too.
  if (filter ?? (name ?? '') === '') {
    const busy = typeof filter === 'object' ? filter : {};
    checkBusyOptions(busy);
    providers.push({
      provide: APP_FILTER,
      useFactory: (host: HttpAdapterHost) => new LockTimeoutFilter(host, busy),
      inject: [HttpAdapterHost],
    });
  }
  return {
    ...definition,
    global: isGlobal ?? false,
    // Nest reads these when it creates the application. Every file that injects a lock has been loaded by then.
    get providers() {
      return [...providers, ...lockProviders(name)];
    },
    get exports() {
      return [client, HoldfastHealthIndicator, ...lockProviders(name).map(({ provide }) => provide)];
    },
  };
}
