// @ts-check
import { join } from 'node:path';

/*
 * Each kind of test is a project: `npm run jest -- --selectProjects faults` runs one, a path as argument runs files of
 * any. `npm test` runs the projects of FAST. tests/README.md has the question of each folder.
 */

const rootDir = join(import.meta.dirname, '..');

/** The client in the processes of the tests sends its commands as every user of ioredis does. */
const PLAIN = process.env.HOLDFAST_PLAIN_TRANSPORT === '1';

const common = {
  rootDir,
  testEnvironment: '<rootDir>/tests/support/jest/environment.mjs',
  extensionsToTreatAsEsm: ['.ts', '.lua', '.html', '.css', '.md'],
  transform: {
    '/inspector/page/inspector\\.(html|css|ts)$': '<rootDir>/tests/support/project/page-transform.cjs',
    '\\.md$': '<rootDir>/tests/support/project/page-transform.cjs',
    '\\.ts$': ['ts-jest', { useESM: true }],
    '\\.lua$': '<rootDir>/tests/support/lua/lua-transform.cjs',
  },
  moduleNameMapper: {
    ...(PLAIN && { '/quick-transport\\.js$': '<rootDir>/tests/support/jest/plain-transport.ts' }),
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^(\\.{1,2}/.*)\\?text$': '$1',
  },
  // These tests look at what the quick transport saves.
  testPathIgnorePatterns: PLAIN ? ['/unit/quick-transport', '/integration/cost'] : [],
};

/** @param {string} displayName @param {string[]} folders @param {string} testRegex */
const project = (displayName, folders, testRegex) => ({
  ...common,
  displayName,
  roots: folders.map((folder) => `<rootDir>/tests/${folder}`),
  testRegex,
});

// A file of a fast folder that `npm test` has no time for says so in its name.
const ANY = '\\.test\\.ts$';
const NOT_SLOW = '/[^/.]+\\.test\\.ts$';
const SLOW = '\\.slow\\.test\\.ts$';

/** The name of each fast project, and its folders. @type {Readonly<Record<string, string[]>>} */
export const FAST = {
  unit: ['unit'],
  support: ['support'],
  contracts: ['contracts'],
  integration: ['integration'],
  faults: ['faults'],
  frameworks: ['frameworks'],
  lua: ['lua'],
  agents: ['interop/instrumentation'],
  models: ['verification/properties', 'verification/nemesis'],
  project: ['project'],
};

/** Projects that need other servers, a JVM, a browser or a long time. @type {Readonly<Record<string, string[]>>} */
export const APART = {
  topologies: ['topologies'],
  redisson: ['interop/redisson'],
  soak: ['verification/soak'],
  browser: ['browser'],
};

export default {
  rootDir,
  projects: [
    ...Object.entries(FAST).map(([name, folders]) => project(name, folders, NOT_SLOW)),
    project('slow', Object.values(FAST).flat(), SLOW),
    ...Object.entries(APART).map(([name, folders]) => project(name, folders, ANY)),
  ],
  maxWorkers: 3,
  workerIdleMemoryLimit: '200MB',
  testTimeout: 60_000,
  globalSetup: '<rootDir>/tests/support/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/tests/support/jest/global-teardown.mjs',
  reporters: ['default', '<rootDir>/tests/support/jest/closing-line.mjs', '<rootDir>/tests/support/jest/record.mjs'],
};
