import { describe, expect, test } from '@jest/globals';
import { forbiddenImports, importCycles, readImports, type Sources } from '../support/import-graph.js';
import { projectFiles, readProjectFile } from '../support/project-files.js';

const sources: Sources = new Map(projectFiles('src', '.ts').map((path) => [path, readProjectFile(path)]));

test('every import in src points down', () => {
  expect(sources.size).toBeGreaterThan(0);
  expect(forbiddenImports(sources)).toEqual([]);
});

test('no import in src runs in a circle', () => {
  expect(importCycles(sources)).toEqual([]);
});

describe('the reader', () => {
  test('sees every form of import and export and tells types from values', () => {
    const text = `import a, { type B } from './a.js';
import type { C } from './c.js';
import {
  d,
} from './d.js';
import './e.js';
export * from './f.js';
export type { G } from './g.js';
const h = await import('./h.js');
// import x from './comment.js';
/* export * from './comment.js'; */
export const i = 'from';
`;
    expect(
      readImports(text)
        .map(({ specifier, typeOnly }) => `${specifier}${typeOnly ? ' type' : ''}`)
        .sort(),
    ).toEqual(['./a.js', './c.js type', './d.js', './e.js', './f.js', './g.js type', './h.js']);
  });
});

describe('the rules', () => {
  const tree: Record<string, string> = {
    'src/index.ts': `export * from './client.js';`,
    'src/client.ts': `import type { Redis } from 'ioredis';\nimport { Lock } from './primitives/lock.js';`,
    'src/errors.ts': '',
    'src/options.ts': `import { E } from './errors.js';`,
    'src/primitives/lock.ts': `import { s } from '../redis/scripts/lock.js';\nimport { w } from '../core/watchdog.js';\nimport type { E } from '../redis/executor.js';`,
    'src/core/watchdog.ts': `import { k } from '../redis/keys.js';\nimport { E } from '../errors.js';`,
    'src/redis/keys.ts': `import { Redis } from 'ioredis';\nimport { E } from '../errors.js';`,
    'src/redis/executor.ts': '',
    'src/redis/scripts/lock.ts': `import source from '../../../lua/lock/acquire.lua';`,
  };
  const after = (path: string, line: string): Sources =>
    new Map(Object.entries({ ...tree, [path]: `${tree[path] ?? ''}\n${line}` }));

  test('a tree that keeps them has no complaint', () => {
    expect(forbiddenImports(new Map(Object.entries(tree)))).toEqual([]);
    expect(importCycles(new Map(Object.entries(tree)))).toEqual([]);
  });

  test.each([
    ['src/redis/keys.ts', `import { w } from '../core/watchdog.js';`, 'imports point down'],
    ['src/core/watchdog.ts', `import type { Lock } from '../primitives/lock.js';`, 'imports point down'],
    ['src/primitives/lock.ts', `import { c } from '../client.js';`, 'imports point down'],
    ['src/primitives/lock.ts', `import { e } from '../redis/executor.js';`, 'only the bindings and the names'],
    ['src/errors.ts', `import { k } from './redis/keys.js';`, 'a leaf imports only leaves'],
    ['src/client.ts', `import { Redis } from 'ioredis';`, 'only src/redis imports ioredis'],
    ['src/client.ts', `import { type Redis } from 'ioredis';`, 'only src/redis imports ioredis'],
    ['src/core/watchdog.ts', `import type { Redis } from 'ioredis';`, 'only the client and its options'],
    ['src/core/watchdog.ts', `import source from '../../lua/lock/renew.lua';`, 'bound in src/redis/scripts'],
    ['src/client.ts', `import { x } from './missing.js';`, 'no such file'],
    ['src/client.ts', `import { x } from './index.js';`, 'the way in for users'],
  ])('%s with %s is refused', (path, line, why) => {
    expect(forbiddenImports(after(path, line))).toEqual([expect.stringContaining(why)]);
  });

  test('a circle is found, also one through three files; types may name each other', () => {
    expect(importCycles(after('src/errors.ts', `import { O } from './options.js';`))).toEqual([
      'src/errors.ts -> src/options.ts -> src/errors.ts',
    ]);
    expect(importCycles(after('src/errors.ts', `import type { O } from './options.js';`))).toEqual([]);
    expect(importCycles(after('src/redis/keys.ts', `import { l } from '../primitives/lock.js';`))).toEqual([
      'src/core/watchdog.ts -> src/redis/keys.ts -> src/primitives/lock.ts -> src/core/watchdog.ts',
    ]);
  });
});
