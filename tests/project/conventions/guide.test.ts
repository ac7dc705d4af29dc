import { describe, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { LockTimeoutError } from '../../../src/index.js';
import { resolveOptions, type ClientOptions } from '../../../src/options.js';
import { PROJECT_ROOT, projectFiles, readProjectFile } from '../../support/project/project-files.js';
import {
  codeIn,
  declarations,
  exportedNames,
  nestedMembers,
  guide,
  page,
  PAGES,
  proseOf,
  publicMembers,
  tableUnder,
} from '../../support/project/guide.js';

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort();
const matches = (text: string, pattern: RegExp): string[] => sorted([...text.matchAll(pattern)].map(([all]) => all));

const errors = declarations('src/errors.ts');
const lockMembers = publicMembers(declarations('src/locks/lock.ts').get('Lock'));
const holdMembers = publicMembers(declarations('src/holding/hold.ts').get('Hold'));
const membersOf = (file: string, name: string): string[] =>
  publicMembers(declarations(`src/synchronizers/${file}.ts`).get(name));
const clientMembers = publicMembers(declarations('src/client/lock-client.ts').get('LockClient'));

describe('error codes', () => {
  /** Each section of the page: its code, and the first paragraph, which names the class and its fields. */
  const sections = page('docs/errors.md')
    .split(/^## /m)
    .slice(1)
    .map((text) => text.split('\n\n'));
  const summary = tableUnder('Code', page('docs/errors.md'));
  const code = (declared: ts.Node): string | undefined => {
    if (!ts.isClassDeclaration(declared)) return undefined;
    const property = declared.members.find((member) => member.name?.getText() === 'code');
    if (property === undefined || !ts.isPropertyDeclaration(property)) return undefined;
    return property.initializer?.getText().slice(1, -1);
  };

  test('the page has a section and a line for every code, once, and the guide names no other code', () => {
    const known = matches(errors.get('LockErrorCode')!.getText(), /ERR_LOCK_\w+/g);
    expect(known.length).toBeGreaterThan(10);
    expect(sections.map(([title]) => title!).sort()).toEqual(known);
    expect(summary.map(([cell]) => codeIn(cell!)[0]!).sort()).toEqual(known);
    expect(matches(guide, /ERR_LOCK_\w+/g)).toEqual(known);
  });

  test('each section has the class of its code with all fields, and says when it occurs, what is left and what to do', () => {
    const classes = new Map(
      [...errors.values()].flatMap((declared) => (code(declared) ? [[code(declared), declared]] : [])),
    );
    expect(classes.size).toBe(sections.length);
    for (const [title, fields, ...rest] of sections) {
      const declared = classes.get(title)!;
      if (!ts.isClassDeclaration(declared)) throw new Error(`${title} has no class`);
      const constructed = declared.members.find((member) => ts.isConstructorDeclaration(member));
      const known = [
        declared.name!.text,
        ...publicMembers(declared).filter((name) => name !== 'code'),
        ...(constructed?.parameters ?? []).flatMap(({ modifiers, name }) => (modifiers ? [name.getText()] : [])),
      ];
      expect(codeIn(fields!).sort()).toEqual(known.sort());
      const said = [...rest.join('\n').matchAll(/^- \*\*(.+):\*\*/gm)].map(([, what]) => what);
      expect([title, said]).toEqual([title, ['When', 'State', 'What to do']]);
    }
  });

  test('the command that helps with an error explains its code', () => {
    expect(new LockTimeoutError('order:42', 10).help).toBe('npx holdfast explain ERR_LOCK_TIMEOUT');
  });

  test('every warning is listed', () => {
    const emitted = projectFiles('src', '.ts')
      // The variables of the command are in its help, which docs/cli.md repeats.
      .filter((path) => !path.startsWith('src/cli/'))
      .flatMap((path) => matches(readProjectFile(path), /\bHOLDFAST_[A-Z_]+/g));
    const listed = tableUnder('Code', page('docs/events.md')).map(([cell]) => codeIn(cell!)[0]!);
    expect(sorted(listed)).toEqual(sorted(emitted));
  });
});

describe('options', () => {
  const rows = tableUnder('Option', page('docs/options.md'));
  const byName = new Map(rows.map(([cell, ...rest]) => [codeIn(cell!)[0]!, rest]));
  const options = declarations('src/options.ts');

  test('every option is in the table, and nothing else is', () => {
    const known = [
      ...matches(declarations('src/client/create-client.ts').get('Connection')!.getText(), /\b(url|redis)\b/g),
      ...publicMembers(options.get('ClientOptions')),
      ...publicMembers(options.get('HandOffOptions')).map((name) => `handOff.${name}`),
    ];
    expect(sorted(byName.keys())).toEqual(sorted(known));
  });

  test('defaults and limits are those of the code', () => {
    const given = (name: string, value: number): ClientOptions =>
      name.startsWith('handOff.') ? { handOff: { [name.slice(8)]: value } } : { [name]: value };
    const { handOff, ...resolved } = resolveOptions({}, '');
    const { lockWatchdogTimeout, commandTimeout, fairLockWaitTimeout, fairWaiterTimeout } = resolved;
    const defaults = {
      ...{ lockWatchdogTimeout, commandTimeout, fairLockWaitTimeout, fairWaiterTimeout },
      ...{ 'handOff.maxSections': handOff?.maxSections, 'handOff.maxTime': handOff?.maxTimeMs },
    };
    for (const [name, value] of Object.entries(defaults)) {
      const [byDefault, unit, meaning] = byName.get(name)!;
      expect([name, Number(byDefault!.replaceAll(',', ''))]).toEqual([name, value]);
      expect(unit).not.toBe('');
      const least = /At least (\d+)/.exec(meaning!)?.[1];
      if (least === undefined) continue;
      expect(() => resolveOptions(given(name, Number(least)), '')).not.toThrow();
      expect(() => resolveOptions(given(name, Number(least) - 1), '')).toThrow(`an integer from ${least} to`);
    }
  });
});

test('every event is in the table with its payload, and nothing else is', () => {
  const rows = tableUnder('Event', page('docs/events.md')).map(([name, payload]) => [
    codeIn(name!)[0],
    codeIn(payload!),
  ]);
  const known = [...nestedMembers(declarations('src/events.ts').get('LockEvents'))];
  expect(known.length).toBeGreaterThan(5);
  expect(rows).toEqual(known);
});

test('everything that the package exports is mentioned', () => {
  const names = exportedNames('src/index.ts');
  expect(names.length).toBeGreaterThan(20);
  const said = sorted([...codeIn(proseOf(guide)).join(' ').matchAll(/\w+/g)].map(([word]) => word));
  expect(names.filter((name) => !said.includes(name))).toEqual([]);
});

test.each([
  ['locks', lockMembers, page('docs/reference.md')],
  ['holds', holdMembers, page('docs/reference.md')],
  ['clients', clientMembers, page('docs/reference.md')],
  ['semaphores', membersOf('semaphore', 'Semaphore'), page('docs/reference.md')],
  ['expirable permits', membersOf('expirable-semaphore', 'PermitExpirableSemaphore'), page('docs/reference.md')],
  ['latches', membersOf('latch', 'CountDownLatch'), page('docs/reference.md')],
])('every public member of %s is in its table', (_what, members, text) => {
  const first = text.split('\n').flatMap((line) => codeIn(line.split(' | ')[0]!.replace(/^\| /, '')));
  const said = first.map((code) => code.replace(/\(.*$/, ''));
  expect(members.length).toBeGreaterThan(4);
  expect(members.filter((name) => !said.includes(name))).toEqual([]);
});

/** Of `java.util.concurrent.locks.Lock`, and Redisson's RLock, RLockAsync and RObservable, 4.7.0. */
const RLOCK = [
  ...['lock', 'lockInterruptibly', 'newCondition', 'tryLock', 'unlock'],
  ...['forceUnlock', 'getHoldCount', 'getName', 'isHeldByCurrentThread', 'isHeldByThread', 'isLocked'],
  ...['remainTimeToLive', 'addListener', 'removeListener'],
  ...['forceUnlockAsync', 'getHoldCountAsync', 'isHeldByThreadAsync', 'isLockedAsync', 'lockAsync'],
  ...['remainTimeToLiveAsync', 'tryLockAsync', 'unlockAsync'],
];

test('the table of RLock has each of its methods, and each replacement that it names exists', () => {
  const rows = tableUnder('Redisson `RLock`', page('docs/coming-from-redisson.md'));
  const theirs = rows.flatMap(([cell]) => codeIn(cell!).map((code) => code.replace(/\(.*$/, '')));
  expect(RLOCK.filter((name) => !theirs.includes(name))).toEqual([]);
  const known = [
    ...lockMembers,
    ...clientMembers.map((name) => `client.${name}`),
    ...publicMembers(declarations('src/options.ts').get('ClientOptions')),
  ];
  const ours = rows.flatMap(([, cell]) => codeIn(cell!).map((code) => code.replace(/\(.*$/, '')));
  expect(ours.filter((name) => !known.includes(name) && !['Async', '{ context }'].includes(name))).toEqual([]);
});

test('every script of package.json is explained', () => {
  const { scripts } = JSON.parse(readProjectFile('package.json')) as { scripts: Record<string, string> };
  const text = page('CONTRIBUTING.md');
  const unexplained = Object.keys(scripts).filter((name) => !new RegExp(`\`npm (run )?${name}(?![\\w:])`).test(text));
  expect(unexplained).toEqual([]);
});

test('versions are those of package.json', () => {
  const { version, engines, peerDependencies, devDependencies } = JSON.parse(readProjectFile('package.json')) as {
    version: string;
    engines: { node: string };
    peerDependencies: { ioredis: string };
    devDependencies: { ioredis: string };
  };
  const [oldest, newest] = peerDependencies.ioredis.split(' || ');
  expect(page('CHANGELOG.md')).toMatch(new RegExp(`^## \\[?${version.replaceAll('.', '\\.')}\\b`, 'm'));
  const text = page('docs/compatibility.md');
  expect(text).toContain(`${engines.node.slice(2)} or later`);
  expect(text).toContain(
    `${newest!.slice(1).split('.')[0]}, or ${oldest!.slice(1).split('.')[0]} from ${oldest!.slice(1)} on`,
  );
  expect(text).toContain(`run with ${devDependencies.ioredis}`);
});

/** The anchor that a heading has on GitHub. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

const anchorsOf = (path: string): string[] =>
  [
    ...readProjectFile(path)
      .replace(/^```[^]*?^```$/gm, '')
      .matchAll(/^#+ (.+)$/gm),
  ].map(([, heading]) => anchorOf(heading!));

describe('links', () => {
  const links = PAGES.flatMap((path) =>
    [...proseOf(page(path)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => {
      const [file, anchor] = target!.split('#');
      return { path, target: target!, file: file === '' ? path : posix.join(posix.dirname(path), file!), anchor };
    }),
  );
  const local = links.filter(({ target }) => !/^https?:/.test(target));

  test('each leads to a file and to a heading of it', () => {
    expect(local.length).toBeGreaterThan(50);
    const broken = local.filter(
      ({ file, anchor }) =>
        !existsSync(join(PROJECT_ROOT, file)) || (anchor !== undefined && !anchorsOf(file).includes(anchor)),
    );
    expect(broken.map(({ path, target }) => `${path}: ${target}`)).toEqual([]);
  });

  test('each example and each page can be reached', () => {
    const linked = new Set(local.map(({ file }) => file));
    const examples = projectFiles('examples', '.ts').filter((path) => path.split('/').length === 2);
    expect(examples.length).toBeGreaterThan(5);
    const wanted = [...examples, ...PAGES.filter((path) => path !== 'README.md')];
    expect(wanted.filter((path) => !linked.has(path))).toEqual([]);
  });
});

test('the README is short: at most 250 lines', () => {
  expect(page('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(250);
});

test('a page has one title, and its first line is the title', () => {
  const wrong = PAGES.filter((path) => {
    const [first = ''] = page(path).split('\n');
    return !first.startsWith('# ') || proseOf(page(path)).match(/^# /gm)!.length !== 1;
  });
  expect(wrong).toEqual([]);
});

test('each page of the guide that a message or a comment of the source names is there', () => {
  const named = projectFiles('src', '.ts').flatMap((path) =>
    [...readProjectFile(path).matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(([name]) => name),
  );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !PAGES.includes(name))).toEqual([]);
  const old = projectFiles('src', '.ts').filter((path) => /README[,:] "/.test(readProjectFile(path)));
  expect(old).toEqual([]);
});
