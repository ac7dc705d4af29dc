// @ts-check

/**
 * A step of a long run: one command, and what it needs.
 *
 * - `usualS`: how many seconds it usually takes, on the slowest machine that is in use. Three times that is its limit.
 * - `tests`: it runs Jest, and fails if no test ran.
 * - `again`: what runs one file of it by itself; the path follows. Without this, a file that failed does not run once more.
 * - `lacks`: why it may exit with 3, which counts as "not run".
 *
 * @typedef {{
 *   run: string,
 *   usualS: number,
 *   env?: Readonly<Record<string, string>>,
 *   tests?: true,
 *   again?: string,
 *   lacks?: string,
 * }} Step
 */

const NO_JVM = 'this machine has no JDK or no Maven';
const ONE_FILE = 'npm run --silent jest -- --maxWorkers=1 --runTestsByPath';

/** Every step by its name, in the order of the runs. @type {Readonly<Record<string, Step>>} */
export const STEPS = {
  check: { run: 'npm run check', usualS: 390 },
  fast: { run: 'npm test', usualS: 400, tests: true, again: ONE_FILE },
  slow: { run: 'npm run suite -- slow', usualS: 700, tests: true, again: ONE_FILE },
  browser: {
    run: 'npm run suite -- browser',
    ...{ usualS: 510, tests: true, again: 'npm run suite -- browser', lacks: 'this machine has no browser' },
  },
  // Servers that are set up in another way: clusters, Sentinel, replicas, TLS, permissions.
  setups: {
    run: 'npm run suite -- servers tests/topologies/',
    env: { HOLDFAST_SERVERS: 'system' },
    ...{ usualS: 340, tests: true, again: 'npm run suite -- servers' },
  },
  topologies: {
    run: 'npm run suite -- topologies tests/contracts/lock.test.ts',
    env: { HOLDFAST_TOPOLOGIES: 'cluster' },
    ...{ usualS: 75, tests: true, again: 'npm run suite -- topologies' },
  },
  servers: {
    run: 'npm run suite -- servers tests/contracts/lock.test.ts tests/lua/lock.test.ts',
    env: { HOLDFAST_SERVERS: '6.0 8.0 valkey-8.1' },
    ...{ usualS: 130, tests: true, again: 'npm run suite -- servers' },
  },
  jvm: {
    run: 'npm run suite -- interop wire',
    env: { HOLDFAST_REDISSON_VERSIONS: '4.7.0' },
    ...{ usualS: 140, tests: true, lacks: NO_JVM },
  },
  // Fewer random programs than by hand.
  versions: { run: 'npm run suite -- node-versions', usualS: 140, env: { HOLDFAST_COMPARISONS: '6000' } },
  instrumentation: { run: 'npm run suite -- instrumentation', usualS: 120 },
  runtimes: { run: 'npm run suite -- runtimes', usualS: 45 },
  'plain-transport': {
    run: 'npm run suite -- plain-transport',
    ...{ usualS: 400, tests: true, again: 'npm run suite -- plain-transport' },
  },
  nemesis: { run: 'npm run suite -- nemesis --minutes 5', usualS: 400 },
  model: { run: 'npm run suite -- model', usualS: 3_600, lacks: NO_JVM },
  mutants: { run: 'npm run suite -- mutants', usualS: 10_800 },
  soak: { run: 'npm run suite -- soak', usualS: 1_800, tests: true },
};

/** What every change has to pass: `.ci/run`. */
export const GATE = ['check', 'fast', 'slow', 'topologies', 'jvm'];

/** `npm run suite -- all`. The soak has runs of the nemesis. */
export const ALL = Object.keys(STEPS).filter((name) => name !== 'nemesis');
