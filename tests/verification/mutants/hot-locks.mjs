// @ts-check
import { without } from './mechanism.mjs';
import { grants } from './names.mjs';

const BACKGROUND = 'tests/faults/background-releases';
const CONTRACT = 'tests/contracts/lock.test';

/** Releases in the background. @type {readonly import('./mechanism.mjs').Mechanism[]} */
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
    'a single try that does not overtake a release in the background',
    'src/waiting/acquire.ts',
    "if (release !== undefined && acquisition.limit.kind === 'one try')",
    'if (release !== undefined && release === undefined)',
    BACKGROUND,
  ),
  without(
    'a limit to tries that follow releases in the background',
    'src/waiting/hand-overs/following-tries.ts',
    'if (this.#inARow.pastFairShare()) return false;',
    '',
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
];
