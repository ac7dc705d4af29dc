export { createClient } from './client/create-client.js';
export type { Connection, CreateClientOptions, LockClient } from './client/create-client.js';
export type { CloseOptions, CloseResult } from './client/closing.js';
export { lockName } from './lock-name.js';
export type { LockName, LockNameValue } from './lock-name.js';
export { lockContext, LockContext } from './ownership/lock-context.js';
export type { Hold, ReleaseOptions } from './holding/hold.js';
export {
  ClientClosedError,
  ConcurrentContextError,
  InvalidArgumentError,
  isLockLost,
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
export type { EventBus, LockEvents, LockKind, LockMode, MissOutcome } from './events.js';
export { logTo } from './diagnostics/log.js';
export type { ConsoleLogger, LoggedClient, StructuredLogger } from './diagnostics/log.js';
export type { AcquisitionCounts, ClientStats } from './diagnostics/stats.js';
export type {
  AcquireMessage,
  ConnectionErrorMessage,
  ForceUnlockedMessage,
  HoldMessage,
  LeaseLostMessage,
  LeaseRenewedMessage,
  RenewFailedMessage,
} from './diagnostics/channels.js';
export { doctor } from './client/doctor.js';
export type { DoctorOptions, Finding } from './inspection/doctor/finding.js';
export type { HoldInfo } from './client/hold-info.js';
export type { Inspection, OwnerInspection, PermitInspection } from './inspection/inspection.js';
export type { InspectOptions, ListedOwner, ListEntry } from './inspection/describe.js';
export type { ForceUnlockOptions } from './inspection/force-unlock.js';
export type { ListOptions } from './inspection/list.js';
export type { OwnerProcess } from './inspection/owner-process.js';
export type {
  ClientOptions,
  Credentials,
  CredentialsFunction,
  HandOffOptions,
  ReleaseMode,
  ReplicasOptions,
} from './options.js';
export type { AcquireOptions, ContextOptions, LockOptions, TryLockOptions } from './locks/arguments.js';
export type { CallOptions } from './locks/lock-call.js';
export type { IoredisOptions, IovalkeyConnection, UserConnection } from './redis/connections/user-connection.js';
export type {
  NodeRedisClient,
  NodeRedisClusterOptions,
  NodeRedisCredentials,
  NodeRedisCredentialsProvider,
  NodeRedisOptions,
  NodeRedisSentinelOptions,
  NodeRedisSource,
} from './redis/connections/node-redis.js';
export type { FairLock } from './locks/fair-lock.js';
export type { FencedHold, FencedLock, FencedLockOptions } from './locks/fenced-lock.js';
export type { TokenSource } from './redis/scripts/fenced-lock.js';
export type { MultiHold } from './several/joint-hold.js';
export type { MultiLock } from './several/multi-lock.js';
export type { RedLock, RedLockOptions } from './several/red-lock.js';
export type { GroupMultiLock } from './several/group/group-lock.js';
export type { Lock } from './locks/lock.js';
export type { CountDownLatch } from './synchronizers/latch.js';
export type { PermitExpirableSemaphore } from './synchronizers/expirable-semaphore.js';
export type { Permit } from './synchronizers/permit.js';
export type { ReadWriteLock } from './locks/read-write-lock.js';
export type { BackOff, SpinLockOptions } from './locks/spin-lock.js';
export type { SemaphoreOptions } from './synchronizers/permit-source.js';
export type { Semaphore } from './synchronizers/semaphore.js';
export type { SemaphorePermits } from './synchronizers/semaphore-permits.js';
export type { ExpirablePermitOptions, PermitsOptions, WaitOptions } from './synchronizers/ownerless-object.js';
