export { holdForRequest, requestLock, RequestLock } from './hold-for-request.js';
export type { ClosableResponse } from '../shared/response-end.js';
export { RequestBusyError } from './request-busy-error.js';
export type {
  BusyOptions,
  BusyStatus,
  HoldOptions,
  RequestCall,
  RequestKeyOf,
  RequestLockOptions,
} from './request-options.js';
