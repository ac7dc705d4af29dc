// @ts-check

/**
 * A suite: what it does, its commands in their order, and whether the package is built first (default: it is). Further
 * words of the caller go to the last command. Commands that are independent run two at a time, the longest ones first. A suite that exits with 3 has found that the machine lacks what it needs.
 *
 * @typedef {{
 *   does: string,
 *   run: readonly string[],
 *   build?: false,
 *   independent?: true,
 *   env?: Readonly<Record<string, string>>,
 * }} Suite
 */

const JEST = 'npm run --silent jest --';

/** The suites by name, as `npm run suite` lists them. @type {Readonly<Record<string, Suite>>} */
export const SUITES = {
  gate: {
    does: 'What every change has to pass, as .ci/run runs it, with a summary.',
    build: false,
    run: ['node .ci/suites/run-steps.mjs gate'],
  },
  all: {
    does: 'Every step, also those that the gate leaves out. --from STEP goes on from a step, --only A,B picks some.',
    build: false,
    run: ['node .ci/suites/run-steps.mjs all'],
  },
  touched: {
    does: 'The steps that the change since a commit (default: the merge base with main) needs beside the gate.',
    build: false,
    run: ['node .ci/suites/run-steps.mjs touched'],
  },
  static: {
    does: 'Types, lint, format, unused code, the package and the public API. npm run check builds, and then runs it.',
    build: false,
    independent: true,
    run: [
      'npx eslint -c .ci/eslint.config.mjs .',
      'npx tsc -p .',
      'npx tsc -p src/integrations/inspector/page',
      'npx tsc -p tests/browser',
      'npx tsc -p examples/nest',
      'npx prettier --check **/*.{ts,mts,cts,mjs,cjs} package.json tsconfig.json',
      'npx knip',
      'npx publint --strict',
      'npx attw --pack .',
      'node .ci/lua/bindings.mjs --check',
      'node .ci/api/report.mjs',
      'npx typedoc --options .ci/site/typedoc.json --emit none',
      'node .ci/lines.mjs',
    ],
  },
  slow: {
    does: 'The files named *.slow.test.ts, which npm test leaves out.',
    run: [`${JEST} --selectProjects slow --maxWorkers=3`],
  },
  topologies: {
    does: 'The contract, contended and fault suites on one server, in a cluster and through Sentinel; then the suites with servers of their own.',
    run: ['node --import tsx .ci/suites/topologies.mjs'],
  },
  browser: {
    does: 'The built site and the page of the inspector in a headless Chromium.',
    build: false,
    run: ['node .ci/suites/browser.mjs'],
  },
  servers: {
    does: 'Suites on Redis 6.0, 8.0 and Valkey 8.1, as far as their packages are available.',
    run: ['node .ci/suites/servers.mjs'],
  },
  'node-versions': {
    does: 'The ownership tests on Node.js 20, 22, 24 and the newest version.',
    build: false,
    run: ['node .ci/suites/node-versions.mjs'],
  },
  runtimes: {
    does: 'A small suite on Bun and Deno, as far as their packages are available.',
    run: ['node .ci/suites/runtimes.mjs'],
  },
  'plain-transport': {
    does: 'The fast suites with commands as every user of ioredis sends them.',
    env: { HOLDFAST_PLAIN_TRANSPORT: '1' },
    run: [`${JEST} --selectProjects unit contracts integration faults --maxWorkers=3`],
  },
  instrumentation: {
    does: 'Locks under OpenTelemetry, Sentry, Datadog and New Relic, as far as their packages are available.',
    run: ['node .ci/suites/instrumentation.mjs'],
  },
  interop: {
    does: 'Holdfast beside the real Redisson. Needs a JDK and Maven.',
    run: ['node tests/interop/redisson/run.mjs'],
  },
  failures: {
    does: 'The same faults on Redisson and on Holdfast, as a table. Needs a JDK and Maven.',
    run: ['node --import tsx tests/interop/redisson/failures/main.ts'],
  },
  model: {
    does: 'The TLA+ modules and their mutants. Needs a JDK, and Maven or TLA2TOOLS.',
    build: false,
    run: ['node tests/verification/model/check.mjs'],
  },
  mutants: {
    does: 'One mechanism after the other is taken out of a copy of the code: a test must notice.',
    run: ['node tests/verification/mutants/mutants.mjs'],
  },
  nemesis: {
    does: 'Processes that lock at random while faults strike.',
    run: ['npx tsx tests/verification/nemesis/main.ts'],
  },
  soak: {
    does: 'Long random schedules, and two short runs of the nemesis.',
    run: [`${JEST} --selectProjects soak --testTimeout=1800000`],
  },
  walks: {
    does: 'Measures which files and functions four usual calls enter, and records it if no walk has become longer.',
    build: false,
    run: ['node --import tsx tests/project/walks/main.ts'],
  },
  bindings: {
    does: 'Writes src/redis/scripts/generated.ts from the headers of the scripts in lua.',
    build: false,
    run: ['node .ci/lua/bindings.mjs'],
  },
  api: {
    does: 'Writes the reports of the public API, .ci/api/*.api.md.',
    run: ['node .ci/api/report.mjs --local'],
  },
  'bench-pages': {
    does: 'Writes the kept rows of the benchmark into the pages, and draws the pictures.',
    build: false,
    run: ['node --import tsx bench/results/main.ts', 'node --import tsx docs/pictures/main.ts'],
  },
  pictures: {
    does: 'Draws the diagrams and charts of the guide (docs/pictures).',
    build: false,
    run: ['node --import tsx docs/pictures/main.ts'],
  },
  'pictures-inspector': {
    does: 'Takes the pictures of the page of the inspector in a headless Chromium.',
    build: false,
    env: { HOLDFAST_PICTURES: '1' },
    run: ['node .ci/suites/browser.mjs inspector-pictures'],
  },
};
