// @ts-check

/**
 * A step of a long run: one command, and what it needs. `lacks`: why it may exit with 3, which counts as "not run".
 *
 * @typedef {{
 *   run: string,
 *   env?: Readonly<Record<string, string>>,
 *   lacks?: string,
 * }} Step
 */

const NO_JVM = 'this machine has no JDK or no Maven';

/** Every step by its name, in the order of the runs. @type {Readonly<Record<string, Step>>} */
export const STEPS = {
  check: { run: 'npm run check' },
  fast: { run: 'npm test' },
  slow: { run: 'npm run suite -- slow' },
  browser: { run: 'npm run suite -- browser', lacks: 'this machine has no browser' },
  // Servers that are set up in another way: clusters, Sentinel, replicas, TLS, permissions.
  setups: { run: 'npm run suite -- servers tests/topologies/', env: { HOLDFAST_SERVERS: 'system' } },
  topologies: {
    run: 'npm run suite -- topologies tests/contracts/lock.test.ts',
    env: { HOLDFAST_TOPOLOGIES: 'cluster' },
  },
  servers: {
    run: 'npm run suite -- servers tests/contracts/lock.test.ts tests/lua/lock.test.ts',
    env: { HOLDFAST_SERVERS: '6.0 8.0 valkey-8.1' },
  },
  jvm: { run: 'npm run suite -- interop wire', env: { HOLDFAST_REDISSON_VERSIONS: '4.7.0' }, lacks: NO_JVM },
  // Fewer random programs than by hand.
  versions: { run: 'npm run suite -- node-versions', env: { HOLDFAST_COMPARISONS: '6000' } },
  instrumentation: { run: 'npm run suite -- instrumentation' },
  runtimes: { run: 'npm run suite -- runtimes' },
  'plain-transport': { run: 'npm run suite -- plain-transport' },
  nemesis: { run: 'npm run suite -- nemesis --minutes 5' },
  model: { run: 'npm run suite -- model', lacks: NO_JVM },
  mutants: { run: 'npm run suite -- mutants' },
  soak: { run: 'npm run suite -- soak' },
};

/** What every change has to pass: `.ci/run`. */
export const GATE = ['check', 'fast', 'slow', 'topologies', 'jvm'];

/** `npm run suite -- all`. The soak has runs of the nemesis. */
export const ALL = Object.keys(STEPS).filter((name) => name !== 'nemesis');
