// @ts-check
import { without } from './mechanism.mjs';
import { grants, lease, lockWaiter, tenure } from './names.mjs';

const BACKGROUND = 'tests/faults/background-releases';
const CONTRACT = 'tests/contracts/lock.test';
const KEPT = 'tests/integration/kept-locks';
const keptLocks = 'src/waiting/hand-overs/kept-locks.ts';
const LOCAL = 'tests/integration/local-hand-over.test';
const LOCAL_ENDS = 'tests/integration/local-hand-over-ends';
const LOCAL_KINDS = 'tests/integration/local-hand-over-kinds';
const streak = 'src/waiting/hand-overs/hand-off-streak.ts';
const FOLLOWS = '  override get followsLocally(): boolean {\n    return true;';
const ASKS = '  override get followsLocally(): boolean {\n    return false;';
const localHandOver = 'src/waiting/hand-overs/local-hand-over.ts';

/** Releases in the background and local hand-overs. @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const HOT_LOCKS = [
  without(
    'an event for a failed release in the background',
    'src/holding/hold.ts',
    'throw cause;\n      releaseFailed(cause);',
    'throw cause;',
    BACKGROUND,
  ),
  without(
    'a wait for the outcome while the release is not written',
    'src/holding/single-hold.ts',
    "tenure.isLeaving = tenure.state === 'releasing' && tenure.lastRequest?.isWritten === true;",
    "tenure.isLeaving = tenure.state === 'releasing';",
    BACKGROUND,
  ),
  without(
    'a loss that a release in the background rejects with, beside the release of another hold',
    'src/holding/single-hold.ts',
    "    if (this.#record.state !== 'releasing') return false;\n",
    '',
    BACKGROUND,
  ),
  without(
    'a single try that does not overtake a release in the background',
    'src/waiting/acquire.ts',
    'const release = isOneTry ? services.tenures.backgroundReleases.of(protocol.key) : undefined;',
    'const release = isOneTry ? undefined : undefined;',
    BACKGROUND,
  ),
  without(
    'a limit to tries that follow releases in the background',
    'src/waiting/hand-overs/following-tries.ts',
    'if (this.#inARow.pastFairShare()) {',
    'if (holder === undefined) {',
    BACKGROUND,
  ),
  without(
    'no second wake-up by a release that a try has followed',
    grants,
    'waiterCount > 0 && !isFollowed',
    'waiterCount > 0',
    BACKGROUND,
  ),
  without(
    'a known loss that a release in the background rejects with',
    'src/holding/hold.ts',
    'if (!hasLeft && (cause instanceof LockLostError || cause instanceof ClientClosedError)) throw cause;',
    '',
    CONTRACT,
  ),
  without(
    'one request for the readers of one turn',
    'src/protocols/lock-protocol.ts',
    'owners.length === 1 && protocol.releaseTogether !== undefined',
    'owners.length < 0 && protocol.releaseTogether !== undefined',
    'tests/integration/many-readers',
  ),
  without(
    'local: a request after a nested hold',
    tenure,
    'if (this.#turns !== undefined || this.#releases !== undefined || this.lease.hasRenewed) return false;',
    'if (this.lease.hasRenewed) return false;',
    LOCAL,
  ),
  without('local: a request after a renewal', lease, '    this.hasRenewed = true;\n', '', LOCAL),
  without(
    'local: a request while an attempt of the acquire may run',
    tenure,
    'return !this.acquireIsDoubtful;',
    'return true;',
    LOCAL,
  ),
  without(
    'local: a lease that Redis has confirmed',
    localHandOver,
    'deadlineOf(now, terms.leaseMs) <= deadlineOf(sentAt, leaseMs) &&',
    '',
    LOCAL,
  ),
  without(
    'local: a longer lease that the request asks for',
    lockWaiter,
    'return this.terms.leaseMs + extraLeaseMs(this.services.options.handOff, this);',
    'return this.terms.leaseMs;',
    LOCAL,
  ),
  without(
    'local: turns of other events',
    localHandOver,
    'if (now - this.#yieldedAt < LOCAL_TURN_MS) return;',
    'if (now >= 0) return;',
    LOCAL,
  ),
  without('local: a request after a cut', localHandOver, 'sessionOf(protocol.key) === session &&', '', LOCAL),
  without('local: an end of the streak', localHandOver, 'now < sentAt + localMs &&', '', LOCAL),
  without(
    'local: sections that count for the limit of hand-overs',
    streak,
    'return this.#sections < this.limit.maxLocalSections && this.#lastedMs() < this.limit.maxTimeMs;',
    'return true;',
    LOCAL,
  ),
  without(
    'local: a token for each hold of a fenced lock',
    'src/protocols/fenced-lock-protocol.ts',
    ASKS,
    FOLLOWS,
    LOCAL,
  ),
  without(
    'local: an owner for each hold of a fair lock',
    'src/protocols/fair-lock-protocol.ts',
    ASKS,
    FOLLOWS,
    LOCAL_KINDS,
  ),
  without(
    'local: an owner for each hold of a spin lock',
    'src/protocols/spin-lock-protocol.ts',
    ASKS,
    FOLLOWS,
    LOCAL_KINDS,
  ),
  without(
    'local: an owner for each read',
    'src/protocols/read-write-lock-protocol.ts',
    'readonly followsLocally = false;',
    'readonly followsLocally = true;',
    LOCAL_KINDS,
  ),
  without(
    'local: an owner for each member of a hold of several locks',
    localHandOver,
    'protocol.followsLocally && !terms.isMember;',
    'protocol.followsLocally;',
    LOCAL_KINDS,
  ),
  without(
    'local: an owner for each hold of a group',
    'src/several/group/group-lock-protocol.ts',
    'readonly followsLocally = false;',
    'readonly followsLocally = true;',
    LOCAL_KINDS,
  ),
  without(
    'local: an end of the streak by its time',
    streak,
    '#sections < this.limit.maxLocalSections && this.#lastedMs() < this.limit.maxTimeMs;',
    '#sections < this.limit.maxLocalSections;',
    LOCAL_ENDS,
  ),
  without(
    'local: an end of the streak by its sections',
    streak,
    'return this.#sections < this.limit.maxLocalSections && this.#lastedMs()',
    'return this.#lastedMs()',
    LOCAL_ENDS,
  ),
  without(
    'keep: an end of the time that counts from the confirmation',
    localHandOver,
    'Math.min(now + keepMs, sentAt + localMs, ',
    'Math.min(now + keepMs, ',
    KEPT,
  ),
  without(
    'local: an end of the streak by a forced unlock of this client',
    localHandOver,
    'this.#forcing.set(key, (this.#forcing.get(key) ?? 0) + 1);',
    '',
    LOCAL,
  ),
  without(
    'local: an end of the streak by a grant to another owner of this client',
    grants,
    'if (before === undefined) this.#endStreaks(',
    'if (before !== undefined) this.#endStreaks(',
    LOCAL,
    KEPT,
  ),
  without('local: a request after a jump of the clock', localHandOver, 'clock.jumped === jumped &&', '', KEPT),
  without(
    'keep: an end of the time',
    keptLocks,
    'setTimer(until, () => void this.release(key));',
    'setTimer(until, () => undefined);',
    KEPT,
  ),
  without(
    'keep: a limit of the time by default that is no shorter than `local`',
    'src/options.ts',
    'Math.max(DEFAULTS.handOff.maxTime, localMs)',
    'DEFAULTS.handOff.maxTime',
    KEPT,
  ),
  without(
    'keep: an end of the time with the limit of hand-overs',
    'src/waiting/hand-overs/hand-off-streak.ts',
    '(this.#startedAt ?? this.clock.now()) + (this.limit?.maxTimeMs ?? 0)',
    'Infinity',
    KEPT,
  ),
  without('keep: a release at close()', 'src/client/closing.ts', '  kept.releaseAll();\n', '', KEPT),
  without('keep: a release when close() begins to drain', 'src/client/drain.ts', '  kept.releaseAll();\n', '', KEPT),
  without('keep: none while the client drains', grants, ' || client.draining', '', KEPT),
  without(
    'one command that ends the subscriptions of several waiters',
    'src/redis/connections/subscriber.ts',
    'if (this.sharded) return this.#unsubscribe([name]);',
    'if (!this.#attended || this.#attended) return this.#unsubscribe([name]);',
    'tests/integration/fair-subscriptions',
  ),
  without(
    'a channel that is wanted again while its subscription is about to end',
    'src/redis/connections/subscriber.ts',
    '.filter((name) => this.#channels.get(name)?.listeners.size === 0)',
    '',
    'tests/integration/fair-subscriptions',
  ),
  without('keep: a release at the end of the process', keptLocks, "process.on('beforeExit', releaseAtExit);", '', KEPT),
  without(
    'keep: a release before the call for the other half of the lock',
    'src/waiting/acquire.ts',
    ' || !kept.isSameSide(waiter.protocol)) void',
    ') void',
    KEPT,
  ),
  without(
    'keep: a kept half that only the same half follows',
    localHandOver,
    '!isAlone(next) || next.protocol.side !== protocol.side',
    '!isAlone(next)',
    KEPT,
  ),
  without(
    'keep: a release for a call that may not follow',
    'src/waiting/acquire.ts',
    '  join();\n  void kept.release(key);\n',
    '  join();\n',
    KEPT,
  ),
];
