export { HoldfastModule } from './module.js';
export { getLockClientToken, getLockToken, InjectLock, InjectLockClient } from './inject.js';
export { Locked, lockedWith } from './locked.js';
export { LockTimeoutFilter } from './lock-timeout-filter.js';
export { HoldfastHealthIndicator } from './health-indicator.js';
export type { HoldfastHealth, HoldfastHealthOptions } from './health-indicator.js';
export type { HoldfastModuleExtras, HoldfastModuleOptions, InjectLockOptions } from './options.js';
export { RequestBusyError } from '../http/index.js';
export type { BusyOptions, BusyStatus } from '../http/index.js';
