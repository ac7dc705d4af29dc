import { describe, expect, test } from '@jest/globals';
import {
  folderCycles,
  forbiddenImports,
  importCycles,
  readImports,
  type Sources,
} from '../../support/project/import-graph.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

const sources: Sources = new Map(projectFiles('src', '.ts').map((path) => [path, readProjectFile(path)]));

test('every import in src points down', () => {
  expect(sources.size).toBeGreaterThan(0);
  expect(forbiddenImports(sources)).toEqual([]);
});

test('src has no cycle of imports between files, and none between folders, types included', () => {
  expect(importCycles(sources)).toEqual([]);
  expect(folderCycles(sources)).toEqual([]);
});

describe('the reader of imports', () => {
  test('sees every form of import and export and distinguishes types from values', () => {
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
    'src/index.ts': `export * from './client/create-client.js';`,
    'src/client/create-client.ts': `import { Lock } from '../locks/lock.js';`,
    'src/errors.ts': '',
    'src/integrations/nest/index.ts': `import { L } from '../decorators/index.js';\nimport { m } from './module.js';`,
    'src/integrations/nest/module.ts': `import { E } from '../../index.js';`,
    'src/integrations/decorators/index.ts': '',
    'src/integrations/decorators/run.ts': `import { k } from '../shared/kinds.js';`,
    'src/integrations/shared/kinds.ts': `import { E } from '../../index.js';`,
    'src/integrations/shared/state.ts': `export class State {}`,
    'src/options.ts': `import { E } from './errors.js';`,
    'src/locks/lock.ts': `import { s } from '../redis/scripts/lock.js';\nimport { w } from '../holding/watchdog.js';\nimport type { E } from '../redis/requests/executor.js';`,
    'src/holding/watchdog.ts': `import { k } from '../redis/keys.js';\nimport { E } from '../errors.js';`,
    'src/redis/keys.ts': `import { E } from '../errors.js';`,
    'src/redis/requests/executor.ts': `import { Redis } from 'ioredis';`,
    'src/redis/scripts/lock.ts': `import source from '../../../lua/lock/acquire.lua';`,
  };
  const after = (path: string, line: string): Sources =>
    new Map(Object.entries({ ...tree, [path]: `${tree[path] ?? ''}\n${line}` }));

  test('a tree that follows the rules is accepted', () => {
    expect(forbiddenImports(new Map(Object.entries(tree)))).toEqual([]);
    expect(importCycles(new Map(Object.entries(tree)))).toEqual([]);
    expect(folderCycles(new Map(Object.entries(tree)))).toEqual([]);
  });

  test.each([
    ['src/redis/keys.ts', `import { w } from '../holding/watchdog.js';`, 'imports point down'],
    ['src/locks/lock.ts', `import { c } from '../client/create-client.js';`, 'imports point down'],
    ['src/redis/keys.ts', `import type { w } from '../holding/watchdog.js';`, 'imports point down'],
    ['src/holding/watchdog.ts', `import { type L } from '../locks/lock.js';`, 'imports point down'],
    ['src/locks/lock.ts', `import { e } from '../redis/requests/executor.js';`, 'only the bindings and the key names'],
    ['src/errors.ts', `import { k } from './redis/keys.js';`, 'a leaf imports only leaves'],
    ['src/client/create-client.ts', `import { Redis } from 'ioredis';`, 'only src/redis imports ioredis'],
    ['src/client/create-client.ts', `import { type Redis } from 'ioredis';`, 'only src/redis imports ioredis'],
    ['src/holding/watchdog.ts', `import type { Redis } from 'ioredis';`, 'only src/redis imports ioredis'],
    ['src/holding/watchdog.ts', `import source from '../../../lua/lock/renew.lua';`, 'bound in src/redis/scripts'],
    ['src/client/create-client.ts', `import { x } from './missing.js';`, 'no such file'],
    ['src/client/create-client.ts', `import { x } from '../index.js';`, 'the way in for users'],
    ['src/client/create-client.ts', `import { x } from '../integrations/nest/index.js';`, 'imports point down'],
    ['src/index.ts', `export * from './integrations/nest/index.js';`, 'the root loads no subpath'],
    ['src/integrations/nest/module.ts', `import { E } from '../../errors.js';`, 'a subpath imports the root'],
    ['src/integrations/nest/module.ts', `import { r } from '../decorators/run.js';`, 'a subpath imports the root'],
    ['src/integrations/nest/module.ts', `import { S } from '../shared/state.js';`, 'declares no class'],
    ['src/integrations/nest/module.ts', `import type { L } from '../../locks/lock.js';`, 'a subpath imports the root'],
  ])('%s with %s is refused', (path, line, why) => {
    expect(forbiddenImports(after(path, line))).toEqual([expect.stringContaining(why)]);
  });

  test('a file in a folder that has no place in the order is refused', () => {
    expect(() => forbiddenImports(after('src/core/lock.ts', `import { k } from '../redis/keys.js';`))).toThrow(
      'no folder that the import test knows',
    );
  });

  test('a cycle is found, also one through three files', () => {
    expect(importCycles(after('src/errors.ts', `import { O } from './options.js';`))).toEqual([
      'src/errors.ts -> src/options.ts -> src/errors.ts',
    ]);
    expect(importCycles(after('src/redis/keys.ts', `import { l } from '../locks/lock.js';`))).toEqual([
      'src/holding/watchdog.ts -> src/redis/keys.ts -> src/locks/lock.ts -> src/holding/watchdog.ts',
    ]);
  });

  test('a cycle of types is found like any other', () => {
    expect(importCycles(after('src/errors.ts', `import type { O } from './options.js';`))).toEqual([
      'src/errors.ts -> src/options.ts -> src/errors.ts',
    ]);
    expect(importCycles(after('src/redis/keys.ts', `export type { L } from '../locks/lock.js';`))).toEqual([
      'src/holding/watchdog.ts -> src/redis/keys.ts -> src/locks/lock.ts -> src/holding/watchdog.ts',
    ]);
  });

  test('a cycle between folders is found, also one of types between files that are in no cycle', () => {
    const up = after('src/holding/tenure.ts', `import type { P } from '../protocols/protocol.js';`);
    expect(folderCycles(up)).toEqual([]);
    const both = new Map([...up, ['src/protocols/plain.ts', `import type { H } from '../holding/hold.js';`]]);
    expect(importCycles(both)).toEqual([]);
    expect(folderCycles(both)).toEqual(['holding -> protocols -> holding']);
  });
});
