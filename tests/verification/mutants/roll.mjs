// @ts-check
import { without } from './mechanism.mjs';
import { request } from './names.mjs';

const SCRIPTS = 'tests/lua/lock';
const CLIENT = 'tests/integration/roll';
const tell = 'lua/lib/tell.lua';
const wakeNext = 'lua/lib/wake-next.lua';
const leave = 'lua/lock/leave.lua';
const rolls = 'src/redis/requests/rolls.ts';

/** The roll of parked clients (tests/verification/model/WakeOne.tla). @type {readonly import('./mechanism.mjs').Mechanism[]} */
export const ROLL = [
  without(
    'passing over a client of the roll that does not listen',
    tell,
    'if heard > 0 then told = told + 1 end',
    'told = told + 1',
    SCRIPTS,
  ),
  without(
    'taking a client that is woken off the roll',
    tell,
    "if heard > 0 and kind == '2' then",
    'if heard > 0 then',
    SCRIPTS,
  ),
  without(
    'telling a slot that migrates from a refusal',
    tell,
    "return string.find(heard.err, 'non local key', 1, true) and -2 or -1",
    'return -1',
    'tests/topologies/moving-roll',
  ),
  without('a deputy', wakeNext, "if woken > 0 then tell('2', 1) end\n", '', SCRIPTS),
  without('a try of the next waiter if nobody was woken', wakeNext, '  if woken == 0 then return 5 end\n', '', SCRIPTS),
  without(
    'the place of a client that comes back',
    'lua/lib/park.lua',
    "'ZADD', waiters, 'NX',",
    "'ZADD', waiters,",
    SCRIPTS,
  ),
  without('foreign owners', 'lua/lib/park.lua', 'string.sub(field, 15, 15)', 'string.sub(field, 14, 14)', SCRIPTS),
  without(
    'taking a client that acquires off the roll',
    'lua/lock/acquire.lua',
    "  if registered == '1' then redis.pcall('ZREM', waiters, station) end\n",
    '',
    SCRIPTS,
  ),
  without(
    'leaving out the own client where others are counted',
    'lua/lib/others-parked.lua',
    " and not redis.pcall('ZSCORE', waiters, station)",
    '',
    SCRIPTS,
  ),
  without('two deputies after a client on duty', leave, "tell('2', 2)", "tell('2', 1)", SCRIPTS),
  without('passing on a wake-up that was not used', leave, "  told = tell('1', 1)\n", '', SCRIPTS),
  without('a request to wake after an unreadable roll', request, 'raw === ROLL_UNREADABLE || ', '', CLIENT),
  without('a request to wake after a lost reply', request, 'raw === 0 || ', '', CLIENT),
  without(
    'a request to wake after a redirection',
    request,
    'raw === ROLL_UNREADABLE || attempt.asking)',
    'raw === ROLL_UNREADABLE)',
    'tests/topologies/moving-roll',
  ),
  without('a memory of refused rolls', rolls, 'if (this.#isRefused(waiters)) return;', '', CLIENT),
  without(
    'a wait of close() for requests to wake',
    'src/client/closing.ts',
    '  await executor.rolls.whenDone();\n',
    '',
    CLIENT,
  ),
];
