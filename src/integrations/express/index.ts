export { lockRequest } from './lock-request.js';
export type { LockRequestHandler, LockRequestOptions, PathParams } from './lock-request.js';
export { RequestBusyError, RequestLock, requestLock } from '../http/index.js';
export type { BusyOptions, BusyStatus, RequestKeyOf, RequestLockOptions } from '../http/index.js';
