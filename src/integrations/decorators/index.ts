export { createLocking } from './create-locking.js';
export type { AnyFunction, DecoratorOptions, LockedFunction, Locking } from './create-locking.js';
export type { AsyncMethod, Fits, LockedDecorator, MethodContext, Takes } from './locked-decorator.js';
export type { FromCall, LockedName, LockedOptions, LockedTerms } from './options.js';
export type { LockedKind } from '../shared/kinds.js';
