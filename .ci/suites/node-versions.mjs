// @ts-check
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildOwnership, compileTargets } from '../../tests/support/ownership/ownership-build.mjs';
import { surroundings } from '../../tests/support/ownership/ownership-surroundings.mjs';

/*
 * Runs everything about ownership on each supported version of Node, in every surrounding and as every compile target.
 * The versions come from the npm package `node`; one that cannot be had here is named and not run. Arguments go to the
 * runner: `--locks <module>` for other locks. HOLDFAST_COMPARISONS: how many random ones for each version.
 */

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast/', import.meta.url));
const RUNNER = fileURLToPath(new URL('../../tests/support/ownership/ownership-runner.mjs', import.meta.url));
const COMPARISONS = process.env.HOLDFAST_COMPARISONS ?? '100000';
const AT_ONCE = 2;

/** AsyncContextFrame and async_hooks carry the list of holds in different ways, so both count. */
const modes = [
  { version: '20', flags: [] },
  { version: '22', flags: [] },
  { version: '22', flags: ['--experimental-async-context-frame'] },
  { version: '24', flags: [] },
  { version: '24', flags: ['--no-async-context-frame'] },
  { version: 'latest', flags: [] },
];

const exec = promisify(execFile);
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/**
 * @param {string} version
 * @returns the path of its binary
 */
async function node(version) {
  const folder = join(CACHE, `node-${version}`);
  const installed = join(folder, 'node_modules', 'node');
  const binary = join(installed, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(binary)) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), '{ "private": true }');
    await exec(npm, ['install', '--prefix', folder, '--ignore-scripts', `node@${version}`], { shell: npm !== 'npm' });
    // Its preinstall script, which npm may be told not to run.
    await exec(process.execPath, ['installArchSpecificPackage.js'], { cwd: installed });
  }
  return binary;
}

/**
 * @param {string} binary
 * @param {string[]} args
 * @returns {Promise<import('../../tests/support/ownership/ownership-runner.mjs').Report>}
 */
async function run(binary, args) {
  const { stdout } = await exec(binary, args).catch((/** @type {unknown} */ error) => {
    // It ends with 1 after its report, too.
    const printed = /** @type {{ stdout?: string }} */ (error);
    if (!printed.stdout) throw error;
    return { stdout: printed.stdout };
  });
  /** @type {unknown} */
  const report = JSON.parse(stdout);
  return /** @type {import('../../tests/support/ownership/ownership-runner.mjs').Report} */ (report);
}

/** @type {Map<string, string>} */
const built = new Map();
for (const target of Object.keys(compileTargets)) {
  built.set(target, await buildOwnership(`node-versions-${target.replaceAll(' ', '-')}`, target));
}
const plain = built.get('TypeScript to ES2022') ?? '';

const runs = [
  { title: 'random programs', args: ['--folder', plain, '--comparisons', COMPARISONS] },
  { title: 'a worker thread', args: ['--folder', plain, '--worker'] },
  ...[...built].map(([target, folder]) => ({ title: target, args: ['--folder', folder] })),
  ...Object.keys(surroundings).flatMap((name) => [
    { title: name, args: ['--folder', plain, '--surrounding', name] },
    { title: `${name}, begun late`, args: ['--folder', plain, '--surrounding', name, '--late'] },
  ]),
];

let failed = false;
let ran = 0;
for (const { version, flags } of modes) {
  /** @type {string} */
  let binary;
  try {
    binary = await node(version);
  } catch (error) {
    console.log(`Node ${version}: not run: it could not be had here (${String(error).split('\n')[0]})`);
    continue;
  }
  ran += 1;
  const started = performance.now();
  const left = [...runs];
  let [scenarios, comparisons] = [0, 0];
  /** @type {string[]} */
  const failures = [];
  /** @type {string | undefined} */
  let exactVersion;
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const report = await run(binary, [...flags, RUNNER, ...next.args, ...process.argv.slice(2)]);
      exactVersion = report.node;
      scenarios += report.scenarios;
      comparisons += report.comparisons;
      for (const failure of report.failures) failures.push(`${next.title}: ${failure}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `Node ${[exactVersion, ...flags].join(' ')}: ${runs.length} runs, ${scenarios} scenarios, ` +
      `${comparisons} comparisons, ${failures.length} failed (${seconds} s)`,
  );
  for (const failure of failures) console.log(`  ${failure}`);
  failed ||= failures.length > 0;
}
if (ran === 0) console.log('FAILED: no version of Node ran the tests');
process.exitCode = failed || ran === 0 ? 1 : 0;
