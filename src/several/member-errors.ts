import {
  ConcurrentContextError,
  InvalidArgumentError,
  LockLostError,
  LockUpgradeError,
  NonReentrantError,
} from '../errors.js';

/** Whether the error rejects the call itself, regardless of the other members. */
export const isMisuse = (error: unknown): boolean =>
  error instanceof ConcurrentContextError ||
  error instanceof LockUpgradeError ||
  error instanceof NonReentrantError ||
  error instanceof LockLostError ||
  error instanceof InvalidArgumentError;

/**
 * Whether the error concerns one server only. A server that hangs may still have a pending request of an earlier call
 * with this context. If a server has lost its part of the hold around the call, a majority of that hold may be left.
 */
export const isOfOneServer = (error: unknown): boolean =>
  error instanceof ConcurrentContextError || error instanceof LockLostError;
