// @ts-check
import { without } from './mechanism.mjs';
import { SUBSCRIPTIONS, subscriber } from './names.mjs';

const TOPOLOGIES = 'tests/integration/topologies';
const SETTINGS = 'tests/contracts/settings';
const FORMS = 'tests/integration/waiting-forms';
const RED = 'tests/integration/red-lock.test';
const ANSWERS = 'tests/integration/red-lock-answers';
const FENCED = 'tests/integration/fenced-lock';
const LEFTOVERS = 'tests/integration/leftovers';
const connection = 'src/redis/own-connection.ts';
const registry = 'src/core/entry-registry.ts';

/** A setting of ours in place of the user's. @type {(what: string, line: string) => import('./mechanism.mjs').Mechanism} */
const ours = (what, line) => without(`R34: ${what}`, connection, `    ${line}\n`, '', SETTINGS, TOPOLOGIES);

/** What single requirements ask for. @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const PROMISES = [
  without(
    'R18: a SUBSCRIBE that went with its connection',
    subscriber,
    '      channel.unanswered = 0;\n      channel.confirmed = false;',
    '      channel.confirmed = false;',
    SUBSCRIPTIONS,
  ),
  without(
    'R18: confirmations that went with their connection',
    subscriber,
    '      channel.unanswered = 0;\n      channel.confirmed = false;',
    '      channel.unanswered = 0;',
    SUBSCRIPTIONS,
  ),
  without('R18: many channels in one SUBSCRIBE', subscriber, 'BATCH = 100;', 'BATCH = 1;', SUBSCRIPTIONS),
  without(
    'R18: a look after a confirmation that came anew, for every kind',
    subscriber,
    'for (const listener of channel.listeners) listener.confirmed();',
    '',
    'tests/faults/subscription-gaps',
    SUBSCRIPTIONS,
  ),
  without(
    'R20: entries that are swept',
    registry,
    'if (this.#entries.size >= this.#sweepAt) this.#sweep();',
    '',
    LEFTOVERS,
  ),
  without(
    'R20: lines of queues that end',
    registry,
    'if (line.entries === 0) this.#lines.delete(line.key);',
    '',
    LEFTOVERS,
  ),
  without(
    'R20: channels that are forgotten',
    subscriber,
    'if (channel.unanswered === 0 && channel.listeners.size === 0) this.#channels.delete(name);\n      },\n      () =>',
    '},\n      () =>',
    LEFTOVERS,
  ),
  without(
    'R21: a step when somebody leaves the line',
    'src/core/lock-entry.ts',
    '      waiter.trying?.abandon();\n      this.#step();',
    '      waiter.trying?.abandon();',
    'tests/integration/semaphore',
  ),
  without(
    'R21: a try of who wants less than the one who has left',
    'src/core/lock-entry.ts',
    'if (wasHead && wantsLess(this.#line.head, waiter)) this.#look.mark = true;',
    '',
    'tests/integration/semaphore',
  ),
  without(
    'R21: the signal of a semaphore that waits',
    'src/primitives/semaphore.ts',
    'patience(this.runtime, wait, signal)',
    'patience(this.runtime, wait, undefined)',
    FORMS,
  ),
  without(
    'R21: the signal of permits that wait',
    'src/primitives/permit-expirable-semaphore.ts',
    'const permit = await this.#orTimeout(permits, leaseTime, waitTime, signal);',
    'const permit = await this.#orTimeout(permits, leaseTime, waitTime, undefined);',
    FORMS,
  ),
  without(
    'R21: the time of permits that wait',
    'src/primitives/permit-expirable-semaphore.ts',
    'const permit = await this.#take(permits, leaseTime, checkWaitTime(waitTime, 0), signal);',
    'const permit = await this.#take(permits, leaseTime, 0, signal);',
    FORMS,
  ),
  without(
    'R21: the signal of a latch',
    'src/primitives/count-down-latch.ts',
    'checkWaitTime(waitTime, Infinity), signal)',
    'checkWaitTime(waitTime, Infinity), undefined)',
    FORMS,
  ),
  without(
    'R23: the signal of a RedLock between its rounds',
    'src/primitives/red-lock.ts',
    'await this.#pause(Math.min(pauseMs, until - now), signal);',
    'await this.#pause(Math.min(pauseMs, until - now), undefined);',
    ANSWERS,
  ),
  without(
    'R28: a refusal that is an answer',
    'src/redis/server-error.ts',
    "  return 'refused';\n",
    "  return 'not-executed';\n",
    ANSWERS,
  ),
  without(
    'R28: a majority that is enough',
    'src/primitives/quorum-round.ts',
    'if (open && count.pending > 0 && (count.failed === 0 || this.misuse === undefined)) return;',
    'if (count.pending > 0 && (count.failed === 0 || this.misuse === undefined)) return;',
    RED,
  ),
  without(
    'R28: a round that ends when there can be no majority',
    'src/primitives/quorum-round.ts',
    'if (open && count.pending > 0 && (count.failed === 0 || this.misuse === undefined)) return;',
    'if (count.acquired < quorum && count.pending > 0 && (count.failed === 0 || this.misuse === undefined)) return;',
    ANSWERS,
  ),
  without(
    'R28: a round that ends when it is known what was in the way',
    'src/primitives/quorum-round.ts',
    'count.busy <= minority && count.failed <= minority;',
    'count.acquired + count.pending >= quorum;',
    'tests/integration/red-lock-turns',
  ),
  without(
    'R28: what a round without a majority was granted goes back',
    'src/primitives/red-lock.ts',
    '    await giveBack(granted, round.settleBy);\n',
    '',
    ANSWERS,
  ),
  without(
    'R28: what is granted after its round goes back',
    'src/primitives/quorum-round.ts',
    'if (!wanted) this.#giveBack(member, hold);',
    '',
    RED,
  ),
  without(
    'a RedLock that asks the others while its turn is being handed over',
    'src/core/grants.ts',
    'if (ours < 0) heir.comes(true);',
    '',
    ANSWERS,
  ),
  without(
    'a RedLock that gives back where its turn was not handed over after all',
    'src/primitives/quorum-round.ts',
    'else if (this.#asked) this.#backInLine();',
    '',
    ANSWERS,
  ),
  without(
    'one of those who want a RedLock at the same moment asks everywhere',
    'src/primitives/red-lock.ts',
    'member.isWanted(context)',
    'member.isKnownBusy(context)',
    ANSWERS,
  ),
  without(
    'the first command of a turn that waits for the others',
    'src/redis/command-connection.ts',
    ' || this.#crowded',
    '',
    'tests/integration/cost',
  ),
  without(
    'R3: a call over several locks that does not wait for ever for what it gives back',
    'src/primitives/multi-lock.ts',
    'within(clock.clock, settleBy - clock.now(), ',
    'within(clock.clock, Infinity, ',
    'tests/faults/red-lock',
  ),
  without(
    'R3: a RedLock without an answer in line and without time that asks no more',
    'src/primitives/red-lock.ts',
    'if (clock.now() >= until) return this.#conclude(round, call);',
    '',
    'tests/faults/red-lock',
  ),
  without(
    'R20: a connection that is left once',
    'src/redis/command-connection.ts',
    'if (this.#leaving || this.#redis.status',
    'if (this.#redis.status',
    'tests/integration/command-connection',
  ),
  without(
    'R3: a RedLock whose time is up when all were asked once',
    'src/primitives/red-lock.ts',
    'if (clock.now() >= until) throw away ?? new LockTimeoutError(this.name, waitTime);',
    'if (until === -Infinity) throw away ?? new LockTimeoutError(this.name, waitTime);',
    'tests/faults/red-lock',
  ),
  without(
    'R3: a multi-lock that begins no more when its time is up',
    'src/primitives/multi-lock.ts',
    'if (this.members.length > 1 && clock.now() >= until) throw',
    'if (this.members.length > 1 && waitTime <= 0) throw',
    'tests/integration/multi-lock.test.ts',
  ),
  without(
    'R3: a multi-lock that asks for no further member when its time is up',
    'src/primitives/multi-lock.ts',
    'if (taken.length > 0 && waitTime <= 0) throw new LockTimeoutError(this.name, call.waitTime);',
    '',
    'tests/integration/multi-lock.test.ts',
  ),
  without(
    'R2: a nested call in a hold that was lost waits for attempts that may still run',
    'src/core/tenure.ts',
    'await request.whenQuiet();\n        throw error;',
    'throw error;',
    'tests/faults/late-delivery',
  ),
  without(
    'R2: an aborted nested call that was granted waits for attempts that may still run',
    'src/core/acquisition.ts',
    'await parent.tenure.turns.whenNoStray();',
    '',
    'tests/faults/late-delivery',
  ),
  without(
    'R2: a call over several locks that waits for attempts that may still run',
    'src/primitives/multi-lock.ts',
    'await Promise.all(holds.map((hold) => SingleHold.recordOf(hold).tenure.whenNoStray()));',
    '',
    'tests/faults/late-delivery',
  ),
  without(
    'R2: an aborted call that was granted waits for attempts that may still run',
    'src/core/grants.ts',
    '      waiter.doubts(request);\n',
    '',
    'tests/faults/late-delivery',
  ),
  without(
    'R28: validity that a grant must have',
    'src/primitives/red-lock.ts',
    'if (joint.counts) {',
    'if (joint.validFor() > -1e9) {',
    ANSWERS,
  ),
  without(
    'R29: a counter that outlives its lock',
    'lua/fenced-lock/acquire.lua',
    "redis.call('PERSIST', token)",
    "redis.call('PEXPIRE', token, lease)",
    FENCED,
  ),
  without(
    'R29: a token for each hold that is handed on',
    'lua/fenced-lock/hand-off.lua',
    "redis.call('INCR', token)\n",
    '',
    FENCED,
  ),
  ours('no resending by an error of the server', 'reconnectOnError: null,'),
  ours('no deadline of commands beside ours', 'commandTimeout: undefined,'),
  without(
    'R34: connections that are made again',
    connection,
    'redis.options.retryStrategy = ',
    'redis.options.sentinelRetryStrategy = ',
    SETTINGS,
    TOPOLOGIES,
  ),
  without(
    'R19: a full server that is asked less and less often',
    connection,
    'turnedAway + 1 : 0',
    '0 : 0',
    'tests/faults/server-states',
  ),
  ours('the words of RESP 2', 'protocol: 2,'),
  ours('replies as RESP 2 shapes them', "replyMapping: 'legacy',"),
];
