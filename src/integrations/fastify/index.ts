export { holdfastFastify } from './plugin.js';
export type { FastifyRouteLock, HoldfastFastifyOptions } from './options.js';
export { RequestBusyError, RequestLock, requestLock } from '../http/index.js';
export type { BusyOptions, BusyStatus, RequestCall, RequestKeyOf, RequestLockOptions } from '../http/index.js';
