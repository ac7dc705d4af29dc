import { PlainLockProtocol } from '../protocols/plain-lock-protocol.js';

/**
 * Redisson's RNonReentrantLock. Its scripts are the plain lock's: every outermost hold has an owner id of its own, so
 * an owner that asks again is known in this process and is refused before anything is sent.
 */
export class NonReentrantLockProtocol extends PlainLockProtocol {
  override readonly reentrant = false;
}
