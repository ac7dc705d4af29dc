// @ts-check
import { without } from './mechanism.mjs';

const RED = 'tests/integration/red-lock.slow.test';
const ANSWERS = 'tests/integration/red-lock-answers';
const UNAVAILABLE = 'tests/faults/red-lock-unavailable';
const LATE_GRANTS = 'tests/integration/red-lock-late-grants';

/** The requests of a RedLock that are pending after the decision of a majority. @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const RED_LOCKS = [
  without(
    'R28: owners that split the servers and do not wait for an unavailable one',
    'src/several/quorum-round.ts',
    'count.pending > 0 && !(isHeldUp && this.#awaitsUnresponsive());',
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
    'R1: a RedLock that releases grants after its release',
    'src/several/joint-hold.ts',
    'member.release().catch(() => undefined);',
    '',
    LATE_GRANTS,
  ),
  without(
    'the owner of one server that tries the others before it waits in their lines',
    'src/several/quorum-round.ts',
    'if (!this.#hasOwnerEach) return',
    'if (waitTime > 0) return',
    ANSWERS,
  ),
  without(
    'R28: a RedLock that fails only when none of its requests is pending',
    'src/several/red-lock.ts',
    '      await requests.whenAllIdle();\n',
    '',
    ANSWERS,
  ),
  without(
    'R28: requests to one server that are counted until the last has ended',
    'src/several/pending-requests.ts',
    'if (left > 0) return void this.#counts.set(member, left);',
    '',
    ANSWERS,
  ),
  without(
    'the release of a round is pending until it has ended',
    'src/several/quorum-round.ts',
    '    requests.begin(member);\n    void releaseHolds',
    '    void releaseHolds',
    ANSWERS,
  ),
  without(
    'a RedLock whose later rounds are nested where its caller is',
    'src/several/red-lock.ts',
    'runAmong(around, () => this.#afterFirst(round, call, requests, limit))',
    'runAmong([], () => this.#afterFirst(round, call, requests, limit))',
    RED,
    ANSWERS,
    'tests/integration/red-lock-turns',
    LATE_GRANTS,
  ),
];
