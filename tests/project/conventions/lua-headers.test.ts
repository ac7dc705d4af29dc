import { describe, expect, test } from '@jest/globals';
import { bindings } from '../../../.ci/lua/bindings.mjs';
import { parseLuaHeader } from '../../../.ci/lua/header.mjs';
import { bodyDepartures } from '../../support/lua/lua-header.js';
import { INCLUDED_FILES, readScript, SCRIPT_FILES } from '../../support/lua/script-files.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';

const GENERATED = 'src/redis/scripts/generated.ts';

test('the generated bindings are those of the headers', async () => {
  expect(SCRIPT_FILES.length).toBeGreaterThan(40);
  // `npm run suite -- bindings` writes them.
  expect(readProjectFile(GENERATED)).toBe(await bindings());
});

test('every script has its replies decoded beside the generated bindings or with the group multi-lock', () => {
  const users = [...projectFiles('src/redis/scripts', '.ts'), 'src/several/group/scripts.ts'].filter(
    (path) => path !== GENERATED,
  );
  const bound = users.flatMap((path) => [...readProjectFile(path).matchAll(/\bbind\((\w+), \{/g)].map(([, id]) => id!));
  const ids = [...readProjectFile(GENERATED).matchAll(/^export const (\w+)/gm)].map(([, id]) => id!);
  expect([...new Set(bound)].sort()).toEqual(ids.sort());
});

describe.each(SCRIPT_FILES)('%s', (path) => {
  const text = readScript(path);

  test('has a header in the fixed form that matches the body', () => {
    const header = parseLuaHeader(text);
    expect(`lua/${header.name}.lua`).toBe(path);
    expect(bodyDepartures(header)).toEqual([]);
  });
});

test.each(INCLUDED_FILES)(
  '%s has a header that names its effect and its variables, and several scripts include it',
  (path) => {
    const file = path.slice('lua/'.length);
    const [first, ...rest] = readProjectFile(path).split('\n\n')[0]!.split('\n');
    expect(first).toMatch(new RegExp(`^-- ${file.slice(0, -'.lua'.length)}: \\S`));
    expect(rest.filter((line) => /^-- (Reads|Defines|Changes) +\S/.test(line))).not.toEqual([]);
    expect(rest.filter((line) => !/^-- +\S/.test(line))).toEqual([]);
    const users = SCRIPT_FILES.filter((script) =>
      new RegExp(`-- include: ${file}(?: \\(defines \\w+\\))?\\n`).test(readProjectFile(script)),
    );
    expect(users.length).toBeGreaterThan(1);
  },
);

describe('the check finds', () => {
  const script = `-- lock/example: says what it does
-- KEYS[1]  lock  hash  owner -> hold count
-- ARGV[1]  owner  string  owner id
-- ARGV[2..n]  leases  int  ms
-- Returns  n   ms left
--          -1  not held; nothing changed

local lock = KEYS[1]
local owner = ARGV[1]

for i = 2, #ARGV do redis.call('PEXPIRE', lock, ARGV[i]) end
if redis.call('HEXISTS', lock, owner) == 0 then return -1 end
return redis.call('PTTL', lock)
`;
  const departures = (from: string, to: string) => {
    expect(script).toContain(from);
    return bodyDepartures(parseLuaHeader(script.replace(from, to)));
  };

  test('nothing in a script with the fixed form', () => {
    expect(departures('', '')).toEqual([]);
  });

  test('nothing in a reply that the header of an included file names', () => {
    const ends = "if owner == '' then return -3 end\n";
    const included = `-- lib/example: ends the script\n-- Returns  -3  too late\n\n${ends}`;
    expect(departures('for i', `${included}for i`)).toEqual([]);
    expect(departures('for i', `${ends}for i`)).not.toEqual([]);
  });

  test.each([
    ['-- ARGV[1]  owner  string', '-- ARGV[1]  holder  string', 'ARGV[1] is holder in the header, owner in the body'],
    ['-- ARGV[2..n]  leases  int  ms\n', '', 'ARGV is looped over without a variable tail'],
    ['ARGV[i]) end', '30) end', 'ARGV[2..n] is not read'],
    ['lock, owner) == 0', 'lock, ARGV[1]) == 0', 'owner is named and never used'],
    ['lock, owner) == 0', 'lock, ARGV[1], owner) == 0', 'ARGV is used by number below'],
    ['local owner = ARGV[1]', 'local owner = ARGV[1]\nlocal other = KEYS[2]', 'KEYS[2] is not in the header'],
    ['return -1', 'return -2', 'it returns -2'],
    ['--          -1  not held; nothing changed\n', '', 'it returns -1'],
    ['-- Returns  n   ms left\n--          -1', '-- Returns  -1', 'a value that is worked out'],
    [`'PTTL'`, `'pttl'`, 'pttl is not in upper case'],
    [`'PTTL'`, `"PTTL"`, 'double quotes'],
  ])('%j written as %j', (from, to, what) => {
    expect(departures(from, to).join('\n')).toContain(what);
  });

  test.each([
    ['-- lock/example: says what it does', '-- says what it does', 'folder/name'],
    ['-- ARGV[1]', '-- ARGV[3]', 'out of order'],
    ['-- KEYS[1]  lock  hash  owner -> hold count\n', '', 'no KEYS'],
    ['  string  owner id', '', 'name  type  meaning'],
  ])('%j written as %j in the header', (from, to, what) => {
    expect(() => departures(from, to)).toThrow(what);
  });
});
