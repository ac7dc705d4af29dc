import type { LockKind } from '../events.js';
import type { Named } from '../lock-name.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/replies.js';
import * as scripts from '../redis/scripts/spin-lock.js';
import { PlainLockProtocol } from './plain-lock-protocol.js';
import { NO_ROLL, type ProtocolPort } from './protocol-port.js';

/** Computes the next pause from the pause before it and the number of failed tries. */
export type Pauses = (before: number, failures: number) => number;

/**
 * Redisson's RSpinLock: the key and values of the plain lock without its channel. Waiters poll, and a release publishes no
 * message.
 */
export class SpinLockProtocol extends PlainLockProtocol {
  readonly polls: Pauses;

  constructor(port: ProtocolPort, named: Named, pauses: Pauses) {
    super(port, named);
    this.polls = pauses;
  }

  override get kind(): LockKind {
    return 'spin';
  }

  override get handsOff(): boolean {
    return false;
  }

  override get followsLocally(): boolean {
    return false;
  }

  /** A line of its own. Other kinds of locks with the same name wait for messages in another line. */
  override get line(): string {
    return 'spin';
  }

  override release(owners: readonly string[]): ScriptRequest<ReleaseReply> {
    const { executor, publish, rollOf } = this.port;
    return executor.run(scripts.release, [this.key], [publish, ...(rollOf?.(this.key) ?? NO_ROLL), ...owners]);
  }
}
