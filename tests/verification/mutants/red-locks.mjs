// @ts-check
import { without } from './mechanism.mjs';

const RED = 'tests/integration/red-lock.slow.test';
const ANSWERS = 'tests/integration/red-lock-answers';
const UNAVAILABLE = 'tests/faults/red-lock-unavailable';
const RECALL = 'tests/integration/red-lock-recall';

/** What a RedLock leaves under way when a majority has decided. @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const RED_LOCKS = [
  without(
    'R28: owners that split the servers and do not wait for an unavailable one',
    'src/several/quorum-round.ts',
    'count.pending > 0 && !this.#isHeldUpByOthers(count.acquired, count.busy);',
    'count.pending > 0;',
    UNAVAILABLE,
  ),
  without(
    'R28: owners that split the servers and wait at the same one',
    'src/several/red-lock.ts',
    'busy.length >= this.quorum ? busy[0]',
    'busy.length > 0 ? busy[0]',
    UNAVAILABLE,
  ),
  without(
    'a RedLock whose grant on its way goes back right behind its request',
    'src/waiting/waiter.ts',
    'if (inLine || trying?.inDoubt',
    'if (this.leaving === undefined || trying?.inDoubt',
    RECALL,
  ),
  without(
    'a RedLock that gives back once what was recalled',
    'src/waiting/waiter.ts',
    'super.took(request) && !this.gaveBack',
    'super.took(request)',
    RECALL,
  ),
  without(
    'R1: a RedLock that gives back what a lost recall has not',
    'src/waiting/waiter.ts',
    "return this.recalled?.reply === 'freed';",
    'return this.recalled !== undefined;',
    RECALL,
  ),
  without(
    'a RedLock whose recalled grants count for its release',
    'src/several/joint-hold.ts',
    'if (waiter?.gaveBack === true) this.#late += 1;',
    '',
    RECALL,
  ),
  without(
    'a recall that is over when both requests are',
    'src/waiting/waiter.ts',
    '    trying.doneWith(this.recalled);\n',
    '',
    RECALL,
  ),
  without(
    'R28: a RedLock that fails when nothing of it is under way any more',
    'src/several/red-lock.ts',
    '      await leftovers.whenAllOver();\n',
    '',
    ANSWERS,
  ),
  without(
    'R28: requests to one server that are counted until the last is over',
    'src/several/pending-requests.ts',
    'if (left > 0) return void this.#counts.set(member, left);',
    '',
    ANSWERS,
  ),
  without(
    'what a round gives back is under way until it has',
    'src/several/quorum-round.ts',
    '    leftovers.begin(member);\n    void giveBack',
    '    void giveBack',
    ANSWERS,
  ),
  without(
    'a RedLock whose later rounds are nested where its caller is',
    'src/several/red-lock.ts',
    'runAmong(around, () => this.#afterFirst(round, call, leftovers, until))',
    'runAmong([], () => this.#afterFirst(round, call, leftovers, until))',
    RED,
    ANSWERS,
    'tests/integration/red-lock-turns',
    'tests/integration/red-lock-recall',
  ),
  without(
    'R10: a part that was lost, for which a recalled grant does not stand',
    'src/several/joint-hold.ts',
    'members.length - lost < quorum;',
    'members.length + this.#recalled + this.#late - lost < quorum;',
    RECALL,
  ),
];
