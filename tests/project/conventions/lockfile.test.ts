import { expect, test } from '@jest/globals';
import { readProjectFile } from '../../support/project/project-files.js';

interface Locked {
  version?: string;
  integrity?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const lockfile = readProjectFile('package-lock.json');
const { version, packages } = JSON.parse(lockfile) as { version: string; packages: Record<string, Locked> };
const installed = Object.entries(packages).filter(([path]) => path !== '');

test('the lockfile has the version of the package', () => {
  expect(version).toBe((JSON.parse(readProjectFile('package.json')) as { version: string }).version);
});

test('every package is locked by its hash and has no registry address', () => {
  expect(installed.length).toBeGreaterThan(0);
  expect(installed.filter(([, { integrity }]) => !integrity).map(([path]) => path)).toEqual([]);
  const elsewhere = installed.filter(
    ([, { resolved }]) => resolved && !resolved.startsWith('https://registry.npmjs.org/'),
  );
  expect(elsewhere.map(([path]) => path)).toEqual([]);
});

test('the binaries for every platform are locked, because npm ci refuses a missing one', () => {
  const known = new Set(installed.map(([path]) => path.replace(/^.*node_modules\//, '')));
  const missing = installed.flatMap(([path, { optionalDependencies }]) =>
    Object.keys(optionalDependencies ?? {})
      .filter((name) => !known.has(name))
      .map((name) => `${path} -> ${name}`),
  );
  expect(missing).toEqual([]);
});
