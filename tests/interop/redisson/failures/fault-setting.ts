import { createClient, type ClientOptions, type LockClient } from 'holdfast';
import { FaultProxy } from '../../../support/proxy/proxy.js';
import { startServer, type RedisServer, type ServerOptions } from '../../../support/servers/servers.js';
import { Jvm, type JvmClientOptions } from '../jvm.js';

/** The resources of one fault, which end with it. */
export class FaultSetting implements AsyncDisposable {
  readonly #ending: (() => Promise<unknown>)[] = [];

  async server(options?: ServerOptions): Promise<RedisServer> {
    const server = await startServer(options);
    this.#ending.push(() => server.stop());
    return server;
  }

  async proxy(server: RedisServer): Promise<FaultProxy> {
    const proxy = await FaultProxy.start(server.address);
    this.#ending.push(() => proxy.close());
    return proxy;
  }

  async jvm(options: JvmClientOptions): Promise<Jvm> {
    const jvm = await Jvm.start();
    this.#ending.push(() => jvm.kill9());
    await jvm.createClient(options);
    return jvm;
  }

  async holdfast(url: string, options: ClientOptions = {}): Promise<LockClient> {
    const client = createClient({ url, ...options });
    this.#ending.push(() => client.close());
    await client.ready();
    return client;
  }

  onEnd(end: () => Promise<unknown>): void {
    this.#ending.push(end);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ending.reverse()) await end().catch(() => undefined);
  }
}

/** One line of the table: the same fault on both, with a short result each. */
export interface FaultRow {
  readonly fault: string;
  /** Takes minutes. */
  readonly slow?: true;
  redisson(setting: FaultSetting): Promise<string>;
  holdfast(setting: FaultSetting): Promise<string>;
}

export const lockNamed = (name: string): { kind: string; name: string } => ({ kind: 'lock', name });

/** `2 s`, `12 ms` */
export function span(ms: number): string {
  return ms < 950 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** The owners of the lock with their hold counts, and its lease. */
export async function heldNow(server: RedisServer, name: string): Promise<string> {
  const counts = Object.values(await server.admin.hgetall(name));
  if (counts.length === 0) return 'free';
  return `hold count ${counts.join(' + ')}, for ${span(await server.admin.pttl(name))} more`;
}

/** The outcome of a call in one word. */
export async function ended(call: Promise<unknown>): Promise<string> {
  try {
    const value = await call;
    return value === undefined || (typeof value === 'object' && value !== null)
      ? 'succeeds'
      : `gives ${JSON.stringify(value)}`;
  } catch (error) {
    const { code, name } = error as { code?: string; name: string };
    return `rejects (${code ?? name})`;
  }
}
