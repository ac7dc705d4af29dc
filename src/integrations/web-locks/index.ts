export { createLockManager, LockManager } from './lock-manager.js';
export type {
  LockGrantedCallback,
  LockInfo,
  LockManagerSnapshot,
  LockMode,
  LockRequestOptions,
  WebLock,
} from './lock-request.js';
