export { createLocking } from './create-locking.js';
export type { Locking } from './create-locking.js';
export type { FromCall, LockedName, LockedOptions } from './options.js';
export type { LockedKind } from '../shared/kinds.js';
