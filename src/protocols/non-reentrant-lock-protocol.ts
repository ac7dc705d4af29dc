import type { LockKind } from '../events.js';
import { PlainLockProtocol } from './plain-lock-protocol.js';

/**
 * Redisson's RNonReentrantLock. It uses the scripts of the plain lock. Every outermost hold has its own owner id, so the
 * client recognizes an owner that asks again and refuses the call before any command.
 */
export class NonReentrantLockProtocol extends PlainLockProtocol {
  override get kind(): LockKind {
    return 'non-reentrant';
  }

  override get reentrant(): boolean {
    return false;
  }
}
