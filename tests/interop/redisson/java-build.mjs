// @ts-check
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Exit code of a run without a JVM. */
export const NO_JVM = 3;

const PROJECT = join(import.meta.dirname, 'java');

/** The tools that are not here. */
export function missingTools() {
  return ['javac', 'mvn'].filter((tool) => spawnSync(tool, ['-version'], { stdio: 'ignore' }).status !== 0);
}

/** @param {string} version  of Redisson */
export function buildWorker(version) {
  const { status } = spawnSync('mvn', ['-q', '-B', 'package', `-Dredisson.version=${version}`], {
    cwd: PROJECT,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new Error(`mvn package failed for Redisson ${version}`);
}
