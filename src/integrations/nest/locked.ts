import { Inject } from '@nestjs/common';
import { InvalidArgumentError, type LockClient } from '../../index.js';
import { createLocking, type Locking } from '../decorators/index.js';
import { getLockClientToken } from './inject.js';

type Decorate = (target: object, key: string | symbol, descriptor: PropertyDescriptor) => void;

/**
 * Returns a `@Locked` decorator whose methods take their locks from a client of the module by its name. Nest injects the
 * client into each instance of the class, so two applications in one process do not meet.
 *
 * @param name - the name that `forRoot()` was given; none for the client without a name.
 * @example
 * const LockedInAudit = lockedWith('audit');
 */
export function lockedWith(name?: string): Locking['Locked'] {
  const property = Symbol.for(getLockClientToken(name));
  const { Locked } = createLocking((self: unknown) => clientIn(self, property));
  const bound = (options: Parameters<typeof Locked>[0]) => {
    const decorate = Locked(options) as unknown as Decorate;
    return (target: object, key: string | symbol, descriptor: PropertyDescriptor): void => {
      if (typeof target === 'function' || typeof key === 'object') {
        throw new InvalidArgumentError(
          '@Locked',
          'on a method of an instance, with experimentalDecorators as Nest',
          key,
        );
      }
      Inject(getLockClientToken(name))(target, property);
      return decorate(target, key, descriptor);
    };
  };
  return bound as unknown as Locking['Locked'];
}

/**
 * Decorates an async method whose calls run inside a lock of the module's client. It is the `@Locked` of
 * `holdfast/decorators`, and keeps the metadata of other decorators: it may stand before or after `@Get()`, `@Cron()`, pipes,
 * guards and the decorators of Swagger.
 *
 * - The class is a provider or a controller of Nest, in a module that imports `HoldfastModule`, unless that is global.
 * - A busy lock is answered by the filter of the module, if the method is called for a request.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid, or a call found no client.
 * @example
 * class OrdersController {
 *   \@Post(':id/pay')
 *   \@Locked({ key: (id: string) => `order:${id}`, waitTime: 2_000 })
 *   async pay(\@Param('id') id: string): Promise<void> {
 *     await this.orders.pay(id);
 *   }
 * }
 */
export const Locked: Locking['Locked'] = lockedWith();

function clientIn(self: unknown, property: symbol): LockClient {
  const client = (self as Record<symbol, LockClient | undefined> | undefined)?.[property];
  if (client !== undefined) return client;
  throw new InvalidArgumentError(
    'this',
    'an instance that Nest created, with HoldfastModule imported; use createLocking(client) of holdfast/decorators elsewhere',
    undefined,
  );
}
