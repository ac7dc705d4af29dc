// @ts-check
import { without } from './mechanism.mjs';
import { grants, lease, lockWaiter, tenure } from './names.mjs';

const BACKGROUND = 'tests/faults/background-releases';
const CONTRACT = 'tests/contracts/lock.test';
const KEPT = 'tests/integration/kept-locks';
const keptLocks = 'src/waiting/hand-overs/kept-locks.ts';
const READERS = 'tests/integration/kept-readers';
const readerStreak = 'src/waiting/hand-overs/reader-streak.ts';
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
    'released.catch(releaseFailed);',
    'released.catch(() => undefined);',
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
    "if (release !== undefined && acquisition.limit.kind === 'one try')",
    'if (release !== undefined && release === undefined)',
    BACKGROUND,
  ),
  without(
    'a limit to tries that follow releases in the background',
    'src/waiting/hand-overs/following-tries.ts',
    'if (this.#inARow.pastFairShare()) {',
    'if (holder === undefined) {',
    BACKGROUND,
  ),
  without('no second wake-up by a release that a try has followed', grants, ' && !isFollowed', '', BACKGROUND),
  without(
    'a known loss that a release in the background rejects with',
    'src/holding/hold.ts',
    'if (cause instanceof LockLostError || cause instanceof ClientClosedError) throw cause;',
    '',
    CONTRACT,
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
    'deadlineOf(now, terms.leaseMs, terms.drift) <= deadlineOf(sentAt, leaseMs, terms.drift) &&',
    '',
    LOCAL,
  ),
  without(
    'local: a longer lease that the request asks for',
    lockWaiter,
    'return this.terms.leaseMs + extraLeaseMs(this.services.options.handOff, this.protocol);',
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
    'local: an owner for each hold of a group',
    'src/protocols/group-lock-protocol.ts',
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
    'setTimer(until, () => void this.#end(kept));',
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
    'keep: a release for a call that may not follow',
    'src/waiting/acquire.ts',
    '  join();\n  void kept.release(key);\n',
    '  join();\n',
    KEPT,
  ),
  without(
    'readers: an answer of Redis that no other client waits',
    readerStreak,
    "if (request.reply !== 'none') return;",
    '',
    READERS,
  ),
  without(
    'readers: no streak of a reader that has lost the lock',
    'lua/read-write-lock/others-wait.lua',
    "if others or redis.call('EXISTS', lock) == 0 then",
    'if others then',
    'tests/lua/read-write-lock',
  ),
  without(
    'readers: a streak that counts from the question',
    readerStreak,
    'this.#endsAt = now + lastsMs;',
    'this.#endsAt = this.clock.now() + lastsMs;',
    READERS,
  ),
  without(
    'readers: an end of the streak',
    readerStreak,
    'return this.clock.now() < this.#endsAt && super.withinLocalLimit();',
    'return this.#endsAt > 0 && super.withinLocalLimit();',
    READERS,
  ),
  without(
    'readers: an end of the time with the streak',
    localHandOver,
    'Math.min(now + keepMs, sentAt + localMs, streak.endsAt)',
    'Math.min(now + keepMs, sentAt + localMs)',
    READERS,
  ),
  without(
    'readers: no kept read beside a writer of this client',
    'src/protocols/read-write-lock-protocol.ts',
    "  readonly otherLine = 'write';\n",
    '',
    READERS,
  ),
  without(
    'keep: a release for a call of the same side',
    keptLocks,
    "return concurrent ? 'beside' : 'same side';",
    "return 'beside';",
    KEPT,
  ),
  without(
    'readers: no kept reader that a writer of this client goes beside',
    keptLocks,
    "if (first.tenure.protocol.side !== side) return 'other side';",
    "if (first.tenure.protocol.side !== side) return 'beside';",
    READERS,
  ),
  without(
    'readers: a kept half that only the same half follows',
    localHandOver,
    'if (!next.followsLocally || next.side !== protocol.side) return false;',
    'if (!next.followsLocally) return false;',
    READERS,
  ),
  without(
    'readers: a kept owner for one call at a time',
    grants,
    '    this.services.kept.forget(tenure);\n    tenure.state',
    '    tenure.state',
    READERS,
  ),
  without(
    'readers: a release of every kept owner',
    keptLocks,
    '[...(this.#kept.get(key) ?? [])].map(',
    '(this.#kept.get(key) ?? []).slice(0, 1).map(',
    READERS,
  ),
];
