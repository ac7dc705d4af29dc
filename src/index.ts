export { createClient } from './client.js';
export type { CloseOptions, Connection, CreateClientOptions, HoldInfo, LockClient } from './client.js';
export { lockContext, LockContext } from './core/lock-context.js';
export type { FencedHold, Hold } from './core/hold.js';
export {
  ClientClosedError,
  ConcurrentContextError,
  InvalidArgumentError,
  LockAbortedError,
  LockError,
  LockLostError,
  LockTimeoutError,
  LockUpgradeError,
  NonReentrantError,
  NotOwnerError,
  NotReplicatedError,
  RedisUnavailableError,
  RefusedError,
  UnknownPermitError,
  UnsupportedRuntimeError,
} from './errors.js';
export type { LockErrorCode, LossReason } from './errors.js';
export type { EventBus, LockEvents } from './events.js';
export type { Inspection, OwnerInspection, PermitInspection } from './inspection.js';
export type { ClientOptions, HandOffOptions, ReplicasOptions } from './options.js';
export type { AcquireOptions, ContextOptions, LockOptions } from './primitives/arguments.js';
export type { FencedLock, FencedLockOptions, TokenSource } from './primitives/fenced-lock.js';
export type { Lock } from './primitives/lock.js';
export type { CountDownLatch } from './primitives/count-down-latch.js';
export type { ExpirablePermitOptions, PermitExpirableSemaphore } from './primitives/permit-expirable-semaphore.js';
export type { Permit } from './primitives/permit.js';
export type { ReadWriteLock } from './primitives/read-write-lock.js';
export type { BackOff, SpinLockOptions } from './primitives/spin-lock.js';
export type { Semaphore } from './primitives/semaphore.js';
export type { PermitsOptions, WaitOptions } from './primitives/shared-object.js';
