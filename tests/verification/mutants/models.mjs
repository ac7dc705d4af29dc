// @ts-check
import { without } from './mechanism.mjs';

const SEMAPHORE = 'tests/lua/semaphore';
const HALF_WAY = 'tests/faults/half-way';
const FAIR = 'tests/lua/fair-lock';

/** Lanes (tests/verification/model/Lanes.tla) and the fair queue (tests/verification/model/FairQueue.tla). @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const LANES_AND_QUEUES = [
  without(
    'a request that has run and gives its answer again',
    'lua/lib/lane.lua',
    '  if done == sequence then return tonumber(answer) end\n',
    '',
    SEMAPHORE,
  ),
  without(
    'a request that an older copy does not overtake',
    'lua/lib/lane.lua',
    '  if tonumber(done) > tonumber(sequence) then return -4 end\n',
    '',
    SEMAPHORE,
  ),
  without(
    'a busy answer that is kept',
    'lua/semaphore/acquire.lua',
    "redis.call('HSET', requests, lane, sequence .. ':' .. answer)",
    "if answer >= 0 then redis.call('HSET', requests, lane, sequence .. ':' .. answer) end",
    SEMAPHORE,
  ),
  without(
    'a cancelled request that never runs',
    'lua/request/cancel.lua',
    "redis.call('HSET', requests, lane, sequence .. ':-4')\n",
    '',
    SEMAPHORE,
    'tests/lua/permit-expirable-semaphore',
  ),
  without(
    'a release of permits that is refused half-way and put back',
    'lua/semaphore/release.lua',
    "  redis.call('HSET', requests, lane, seen or '0:-4')\n",
    '',
    HALF_WAY,
  ),
  without(
    'an acquire of permits that is refused half-way and put back',
    'lua/permit-expirable-semaphore/acquire.lua',
    "      if change ~= 0 then redis.call('INCRBY', semaphore, -change) end\n",
    '',
    HALF_WAY,
  ),
  without(
    'expired leases that end in both keys or in neither',
    'lua/lib/permit-sweep.lua',
    "    redis.call('INCRBY', semaphore, -over)\n",
    '',
    HALF_WAY,
  ),
  without(
    'an opening of a latch that is refused half-way and put back',
    'lua/latch/count-down.lua',
    "  if opens then redis.call('SET', opened, before or '0', 'PX', before and '3600000' or '1') end\n",
    '',
    HALF_WAY,
  ),
  without(
    'a release of a reader that a repeat finds undone',
    'lua/read-write-lock/release.lua',
    "  redis.call('PEXPIRE', lock, longest)\n  -- Delete the fields last: until then a repeat runs completely.\n  redis.call('HDEL', lock, unpack(removed))\n",
    "  redis.call('HDEL', lock, unpack(removed))\n  redis.call('PEXPIRE', lock, longest)\n",
    'tests/faults/half-way-locks',
  ),
  without(
    'a place in a queue that its release finds',
    'lua/fair-lock/acquire.lua',
    "  redis.call('ZADD', alive, now + waiterTimeout, owner)\n  redis.call('ZADD', timeouts, math.max(timeout, full), owner)\n  redis.call('RPUSH', queue, owner)\n",
    "  redis.call('ZADD', timeouts, math.max(timeout, full), owner)\n  redis.call('RPUSH', queue, owner)\n  redis.call('ZADD', alive, now + waiterTimeout, owner)\n",
    'tests/faults/half-way-locks',
  ),
  without('the dead of a queue that go', 'lua/lib/fair-sweep.lua', 'if #gone > 0 then', 'if false then', FAIR),
  without(
    'the remaining waiters when many leave a queue',
    'lua/lib/fair-sweep.lua',
    "redis.call('LTRIM', queue, #leaving + #staying, -1)",
    "redis.call('LTRIM', queue, #leaving + #staying + 1, -1)",
    FAIR,
  ),
  without(
    'a queue without duplicates when its trimming is refused',
    'lua/lib/fair-sweep.lua',
    "    redis.call('LTRIM', queue, 0, -1)\n",
    '',
    HALF_WAY,
  ),
  without(
    'a timeout with room for all in front',
    'lua/fair-lock/acquire.lua',
    'math.max(timeout, full)',
    'timeout',
    FAIR,
  ),
  without(
    'timeouts that are raised when something is missing',
    'lua/fair-lock/refresh.lua',
    '    if 2 * missing > wait then raised = raised + missing end\n',
    '',
    FAIR,
  ),
  without(
    'a timeout that counts the places in front',
    'lua/fair-lock/refresh.lua',
    'now + place * wait - timeout',
    'now + wait - timeout',
    FAIR,
  ),
  without(
    'raised timeouts of those behind',
    'lua/fair-lock/refresh.lua',
    '  if raised > 0 then redis.call',
    '  if raised > 0 and timeout then redis.call',
    FAIR,
  ),
];

/** For each mutant of a model the mechanisms of the code that it stands for. @type {Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>} */
export const COUNTERPARTS = {
  Ownership: {
    noNotAfter: ['not-after of acquire', 'not-after of acquire-nested', 'not-after of release-partial'],
    renewNoNotAfter: ['not-after of renew'],
    blind: ['an absolute count in acquire-nested', 'an absolute count in release-partial'],
    enterExpired: ['a grant that comes too late'],
    rejectEarly: ['waiting for unanswered attempts before failing'],
    deadGrantAtOnce: ['waiting for unanswered attempts before failing'],
    noWait: ['a compensation that cannot be overtaken'],
    noMax: ['a nested acquire that never shortens'],
    noQuarantine: ['no count beside an unanswered one'],
    renewConfirms: ['deadlines that a partial release may cut'],
    relNoComp: ['a compensation of a doubtful first acquire'],
    nestGivesBack: ['a nested grant that comes too late'],
    fromReply: ['a lease that counts from the sending'],
    estimateAhead: ['a lower bound of the clock'],
    nestCreates: ['a nested acquire that never creates'],
    goneAnyTime: ['a renewal that stops with the release'],
    gNoLease: ['a lease that ended before a repeated release'],
    loseNoComp: ['a compensation after a last deadline'],
    reuseId: ['a new owner after an unanswered try'],
  },
  HandOff: {
    noNotAfter: ['not-after of hand-off'],
    sentLast: ['a hand-off that counts from its first attempt'],
    sameTenure: ['a fresh owner after a hand-off'],
    rejectEarly: ['waiting for unanswered attempts before failing'],
    undoOnlyOld: ['a compensation of the next owner of a hand-off'],
    // No line to take out: the words of a request are made once, for all of its attempts.
    repeatOther: [],
  },
  Waiting: {
    clearAtReply: ['a mark that the sending clears', 'a mark that the answer leaves alone'],
    noNaMark: ['a mark when what a try took late has gone back'],
    staleTtl: ['a ttl that a try forgets'],
    anyBusy: ['a ttl that only the newest try teaches'],
    wakeWaiter: ['a mark that a message sets'],
    firstNoMark: ['a mark that a confirmation sets'],
    resubNoMark: ['R18: a probe after a new confirmation, for every kind'],
    readyCounts: ['R18: confirmations that went with their connection'],
    anyConf: ['R19: a confirmation that only the last answer gives'],
  },
  Lanes: {
    runsAgain: ['a request that has run and gives its answer again'],
    olderRuns: ['a request that an older copy does not overtake'],
    busyNotStored: ['a busy answer that is kept'],
    cancelStoresNothing: ['a cancelled request that never runs'],
    laneFreed: ['a lane that is taken until its compensation is answered'],
    oneSequence: ['a sequence of its own for each request'],
  },
  FairQueue: {
    noRemoval: ['the dead of a queue that go'],
    joinAsRedisson: ['a timeout with room for all in front'],
    noRaise: ['timeouts that are raised when something is missing'],
    scoreAlone: ['a timeout that counts the places in front'],
    raiseAlone: ['raised timeouts of those behind'],
  },
};
