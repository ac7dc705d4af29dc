export { createClient } from './client.js';
export type { CloseOptions, Connection, CreateClientOptions, HoldInfo, LockClient } from './client.js';
export { lockContext, LockContext } from './core/lock-context.js';
export type { Hold } from './core/hold.js';
export {
  ClientClosedError,
  ConcurrentContextError,
  InvalidArgumentError,
  LockAbortedError,
  LockError,
  LockLostError,
  LockTimeoutError,
  NonReentrantError,
  NotOwnerError,
  NotReplicatedError,
  RedisUnavailableError,
  RefusedError,
  UnsupportedRuntimeError,
} from './errors.js';
export type { LockErrorCode, LossReason } from './errors.js';
export type { EventBus, LockEvents } from './events.js';
export type { Inspection, OwnerInspection } from './inspection.js';
export type { ClientOptions, HandOffOptions, ReplicasOptions } from './options.js';
export type { AcquireOptions, ContextOptions, LockOptions } from './primitives/arguments.js';
export type { Lock } from './primitives/lock.js';
