// @ts-check
import { without } from './mechanism.mjs';
import { lockWaiter, subscriber, wakeUps, watchdog } from './names.mjs';

const NEMESIS = 'tests/verification/soak/nemesis';
/** With local hand-overs and kept locks in all clients. */
const HOT = 'tests/verification/soak/hot-nemesis';
const localHandOver = 'src/waiting/hand-overs/local-hand-over.ts';
const keptLocks = 'src/waiting/hand-overs/kept-locks.ts';

/**
 * The library broken on purpose, in ways that only a nemesis which looks for waiting, order, conservation and memory
 * notices. Other tests notice most of them, too; here it has to be the nemesis.
 *
 * @type {readonly import('./mechanism.mjs').Mechanism[]}
 */
export const SABOTAGES = [
  without(
    'nemesis: a refused call leaves nothing to take back',
    'src/redis/requests/refused-request.ts',
    'return !line || (script?.writtenAt ?? []).some(([from, to]) => line >= from && line <= to);',
    'return !line || script !== undefined;',
    NEMESIS,
  ),
  without('nemesis: a watchdog that renews', watchdog, 'void this.#renew(this.#takeDue(now));', '', NEMESIS),
  without(
    'nemesis: a watchdog that renews at Redis, too',
    watchdog,
    'let request: Renewal = await script.renew(items).done;',
    'let request: Renewal = { error: undefined, reply: batch.map(() => ({ remainingMs: 30_000 })), sentAt: this.clock.now() };',
    NEMESIS,
  ),
  without(
    'nemesis: a release that publishes',
    'lua/lock/release.lua',
    "redis.call(publish, channel, '0')\n",
    '',
    NEMESIS,
  ),
  without(
    'nemesis: subscriptions that come back after a cut',
    subscriber,
    "    this.#state = 'ready';\n    this.#subscribeMissing();\n",
    "    this.#state = 'ready';\n",
    NEMESIS,
  ),
  without(
    'nemesis: a fair lock served in order',
    'lua/fair-lock/acquire.lua',
    "redis.call('RPUSH', queue, owner)",
    "redis.call('LPUSH', queue, owner)",
    NEMESIS,
  ),
  without(
    'nemesis: permits that all go back',
    'lua/semaphore/release.lua',
    "redis.pcall('INCRBY', semaphore, change)",
    "redis.pcall('INCRBY', semaphore, math.min(tonumber(change), 2))",
    NEMESIS,
  ),
  without(
    'nemesis: memory that is freed',
    watchdog,
    '    this.#retries.delete(tenure);\n  }',
    '    this.#retries.delete(tenure);\n    (this.kept ??= []).push(tenure);\n  }',
    NEMESIS,
  ),
  without(
    'nemesis: calls that are forgotten when they have settled',
    lockWaiter,
    'this.#makeHold = makeHold;',
    'this.#makeHold = makeHold;\n    (globalThis.kept ??= []).push(this);',
    NEMESIS,
  ),
  without(
    'nemesis: messages that only make a latch look',
    wakeUps,
    '    this.schedule.published();\n    this.schedule.wake();\n',
    `    for (const waiter of [...this.line] as any[]) {
      if (!waiter.sharesReplies) continue;
      this.line.remove(waiter);
      waiter.grant(undefined);
    }
    this.schedule.published();
    this.schedule.wake();
`,
    NEMESIS,
  ),
  without(
    'nemesis: lines distinguished by their keys, not by their channels',
    'src/waiting/wait-lines.ts',
    "const place = key.includes('{') ? `{} ${channel}` : channel;",
    'const place = channel;',
    NEMESIS,
  ),
  without(
    'nemesis: a call inside a hold of another kind is refused',
    'src/holding/innermost-hold.ts',
    'if (held.family !== family) return true;',
    'if (held.family !== family) return false;',
    NEMESIS,
  ),
  without('nemesis: hot: an end of the streak', localHandOver, 'now < sentAt + localMs &&', '', HOT),
  without(
    'nemesis: hot: a lease that Redis has confirmed',
    localHandOver,
    'deadlineOf(now, terms.leaseMs) <= deadlineOf(sentAt, leaseMs) &&',
    '',
    HOT,
  ),
  without(
    'nemesis: hot: a release of a kept lock',
    keptLocks,
    'setTimer(until, () => void this.release(key));',
    'setTimer(until, () => undefined);',
    HOT,
  ),
  without(
    'nemesis: hot: an end of the time of a kept lock',
    localHandOver,
    'const until = Math.min(now + keepMs, sentAt + localMs, streak.endsAt);',
    'const until = Math.min(sentAt + localMs, streak.endsAt);',
    HOT,
  ),
  without(
    'nemesis: hot: no section while this client forces the release',
    localHandOver,
    'this.#forcing.set(key, (this.#forcing.get(key) ?? 0) + 1);',
    '',
    HOT,
  ),
  without(
    'nemesis: hot: an end of the tenure by a forced unlock of this client',
    'src/locks/single-lock.ts',
    'if (freed) this.runtime.lines.force(this.protocol, owners, isDoubtful);',
    '',
    HOT,
  ),
  without(
    'nemesis: hot: a share of the lock for other clients',
    'src/waiting/hand-overs/hand-off-streak.ts',
    'return this.#sections >= this.limit.maxSections || this.#lastedMs() >= this.limit.maxTimeMs;',
    'return false;',
    HOT,
  ),
];
