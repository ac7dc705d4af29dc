// @ts-check
import { without } from './mechanism.mjs';
import { PROPERTIES, WAKING, grants } from './names.mjs';

/** Hand-offs (tests/model/HandOff.tla), permits and their lanes. @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const SHARING = [
  without(
    'R33: a bound of the hand-off',
    'src/core/hand-off-streak.ts',
    'return this.#sections >= this.limit.maxSections || this.#lastedMs() >= this.limit.maxTimeMs;',
    'return false;',
    PROPERTIES,
    'tests/integration/sharing',
  ),
  without(
    'R33: room for others after a hand-off streak',
    grants,
    '!this.shared) this.look.yield();',
    '!this.shared) this.look.mark = true;',
    'tests/integration/sharing',
  ),
  without(
    'no hand-off to who is busy',
    grants,
    '!(head instanceof LockWaiter) || head.busy ||',
    '!(head instanceof LockWaiter) ||',
    PROPERTIES,
    WAKING,
  ),
  without(
    'permits for whoever is first, even while it asks Redis',
    grants,
    '        // Redis may be granting it the same just now; it is served first all the same, for nobody is to overtake it.\n',
    '        if (waiter.busy) continue;\n',
    'tests/integration/semaphore',
  ),
  without(
    'what Redis grants to who has been served already goes back',
    grants,
    'waiter.served = waiter.busy;',
    '',
    'tests/integration/semaphore',
  ),
  without(
    'permits go back to Redis after a streak',
    'src/core/grants.ts',
    '        if (this.#streak.asksForOthers()) {',
    '        if (false) {',
    'tests/integration/semaphore',
  ),
  without(
    'permits that nobody took go to Redis',
    'src/core/grants.ts',
    '    if (permits <= this.#permits) {',
    '    if (true) {',
    'tests/integration/semaphore',
  ),
  without(
    'a waiter for more permits is not overtaken',
    'src/core/grants.ts',
    'waiter.takes === 0 || waiter.takes > left) break;',
    'waiter.takes === 0 || waiter.takes > left) continue;',
    'tests/integration/semaphore',
  ),
  without(
    'a sequence of its own for each request',
    'src/core/lanes.ts',
    'this.#sequence += 1;',
    '',
    'tests/integration/semaphore',
  ),
  without(
    'a lane that is taken until its compensation is answered',
    'src/core/lanes.ts',
    '    return this.compensations\n      .add(',
    '    this.free(lane);\n    return this.compensations\n      .add(',
    'tests/faults/lanes',
  ),
  without(
    'a release of permits that is repeated',
    'src/core/lanes.ts',
    '      void this.settle(lane, () => send(lane));\n',
    '      this.free(lane);\n',
    'tests/faults/lanes',
    'tests/integration/semaphore',
  ),
  without(
    'a refused release of permits that goes on',
    'src/core/lanes.ts',
    '      void this.settle(lane, () => send(lane));\n',
    '      if (inDoubt) void this.settle(lane, () => send(lane));\n      else this.free(lane);\n',
    'tests/faults/lanes',
  ),
  without(
    'a refused release of permits with leases that goes on',
    'src/primitives/permit-expirable-semaphore.ts',
    'void this.runtime.compensations.add(',
    'if (inDoubt) void this.runtime.compensations.add(',
    'tests/integration/permit-expirable-semaphore',
  ),
];
