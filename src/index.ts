export { createClient } from './client.js';
export type { CloseOptions, Connection, CreateClientOptions, HoldInfo, LockClient } from './client.js';
export { lockContext, LockContext } from './core/lock-context.js';
export type { Hold } from './core/hold.js';
export type { FencedHold } from './core/single-hold.js';
export {
  ClientClosedError,
  ConcurrentContextError,
  InvalidArgumentError,
  LockAbortedError,
  LockError,
  LockLostError,
  LockTimeoutError,
  LockUpgradeError,
  MultiUnlockError,
  NonReentrantError,
  NoQuorumError,
  NotOwnerError,
  NotReplicatedError,
  RedisUnavailableError,
  RefusedError,
  UnknownPermitError,
  UnsupportedRuntimeError,
} from './errors.js';
export type { LockErrorCode, LossReason, MemberFailure, ServerResult } from './errors.js';
export type { EventBus, LockEvents } from './events.js';
export type { Inspection, OwnerInspection, PermitInspection } from './inspection.js';
export type { ClientOptions, HandOffOptions, ReplicasOptions } from './options.js';
export type { AcquireOptions, ContextOptions, LockOptions } from './primitives/arguments.js';
export type { FairLock } from './primitives/fair-lock.js';
export type { FencedLock, FencedLockOptions, TokenSource } from './primitives/fenced-lock.js';
export type { MultiHold } from './core/multi-hold.js';
export type { MultiLock } from './primitives/multi-lock.js';
export type { RedLock, RedLockOptions } from './primitives/red-lock.js';
export type { GroupMultiLock } from './primitives/group-multi-lock.js';
export type { Lock } from './primitives/lock.js';
export type { CountDownLatch } from './primitives/count-down-latch.js';
export type { ExpirablePermitOptions, PermitExpirableSemaphore } from './primitives/permit-expirable-semaphore.js';
export type { Permit } from './primitives/permit.js';
export type { ReadWriteLock } from './primitives/read-write-lock.js';
export type { BackOff, SpinLockOptions } from './primitives/spin-lock.js';
export type { SemaphoreOptions } from './primitives/permit-source.js';
export type { Semaphore } from './primitives/semaphore.js';
export type { SemaphorePermits } from './primitives/semaphore-permits.js';
export type { PermitsOptions, WaitOptions } from './primitives/shared-object.js';
