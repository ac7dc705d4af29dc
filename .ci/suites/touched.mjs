// @ts-check

/**
 * Which steps a change needs beside the gate, by the paths that it touches. A path needs the steps of all its rows. A
 * pattern that ends with a slash is a folder; a star stands for a part of a name.
 *
 * @typedef {{ subject: string, paths: readonly string[], steps: readonly string[] }} Row
 */

/** @type {readonly Row[]} */
export const TOUCHED = [
  {
    subject: 'The page, the site, the CLI',
    paths: [
      'src/integrations/inspector/',
      'src/cli/',
      'docs/',
      'README.md',
      '.ci/site/',
      '.ci/suites/browser.mjs',
      'tests/browser/',
      'tests/support/browser/',
    ],
    steps: ['browser'],
  },
  {
    subject: 'Connections, topologies',
    paths: [
      'src/redis/*.ts',
      'src/redis/connections/',
      'src/redis/requests/',
      'src/redis/topologies/',
      'src/several/',
      'tests/topologies/',
      'tests/support/servers/',
      '.ci/suites/servers.mjs',
      '.ci/suites/get-server',
    ],
    steps: ['setups', 'servers'],
  },
  {
    subject: 'How commands are sent',
    paths: [
      'src/redis/connections/',
      'src/redis/requests/',
      'tests/interop/instrumentation/',
      '.ci/suites/instrumentation.mjs',
    ],
    steps: ['instrumentation', 'plain-transport'],
  },
  {
    subject: 'Lua',
    paths: [
      'lua/',
      'src/redis/scripts/',
      'src/protocols/',
      '.ci/lua/',
      'tests/interop/redisson/',
      'tests/support/java/',
    ],
    steps: ['servers', 'jvm'],
  },
  {
    subject: 'Ownership',
    paths: [
      'src/ownership/',
      'tests/unit/ownership/',
      'tests/support/ownership/',
      'tests/interop/runtimes/',
      '.ci/suites/node-versions.mjs',
      '.ci/suites/runtimes.mjs',
    ],
    steps: ['versions', 'instrumentation', 'runtimes'],
  },
  {
    subject: 'Lines, tenures',
    paths: [
      'src/waiting/',
      'src/holding/',
      'src/synchronizers/',
      'src/locks/',
      'tests/verification/nemesis/',
      'tests/support/history/',
    ],
    steps: ['plain-transport', 'nemesis'],
  },
  {
    subject: 'The package and its dependencies',
    paths: ['package.json', 'package-lock.json', '.ci/tsdown.config.mjs'],
    steps: ['browser', 'versions', 'instrumentation', 'runtimes'],
  },
  { subject: 'The models', paths: ['tests/verification/model/'], steps: ['model'] },
  { subject: 'The mutants', paths: ['tests/verification/mutants/'], steps: ['mutants'] },
  { subject: 'The soak', paths: ['tests/verification/soak/'], steps: ['soak'] },
  {
    subject: 'Everything else: the gate is enough',
    paths: [
      ...['src/README.md', 'src/*.ts', 'src/client/', 'src/diagnostics/', 'src/inspection/', 'src/integrations/'],
      ...['tests/', 'bench/', 'examples/', '.ci/', '*'],
    ],
    steps: [],
  },
];

/** @param {string} pattern @param {string} path */
function matches(pattern, path) {
  if (pattern.endsWith('/')) return path.startsWith(pattern);
  const [before = '', after] = pattern.split('*');
  if (after === undefined) return path === pattern;
  const between = path.slice(before.length, path.length - after.length);
  return path.length >= pattern.length - 1 && path === before + between + after && !between.includes('/');
}

/**
 * The steps of a change, and the paths that no row covers.
 *
 * @param {readonly string[]} paths
 * @returns {{ steps: Set<string>, unknown: string[] }}
 */
export function stepsFor(paths) {
  /** @type {Set<string>} */
  const steps = new Set();
  const unknown = paths.filter((path) => {
    const rows = TOUCHED.filter((row) => row.paths.some((pattern) => matches(pattern, path)));
    for (const row of rows) for (const step of row.steps) steps.add(step);
    return rows.length === 0;
  });
  return { steps, unknown };
}
