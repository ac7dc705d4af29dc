import { describe, expect, test } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { scriptModule, scriptText, withIncludes } from '../../../.ci/lua/script-text.cjs';
import { ALL_SCRIPTS } from './lock-scripts.js';
import { admin } from '../redis.js';
import { readProjectFile } from '../project/project-files.js';
import { SCRIPT_FILES } from './script-files.js';

test('a script is sent without comments, indentation and blank lines', () => {
  const source = '-- lock/x: says\n\nlocal a = 1 -- why\nif a then\n  -- more\n  return a -- b\nend\n';
  expect(scriptText(source)).toBe('local a = 1\nif a then\nreturn a\nend');
});

test.each([
  ['dashes in a string', `return '-- not a comment'`],
  ['dashes in a double-quoted string', `return "a -- 'b'"`],
  ['an escaped quote before dashes', `return 'it\\'s -- one'`],
  ['an apostrophe in a comment', `-- it's\nreturn '--'`],
  ['a number less a negative one', `return 5 - -3`],
])('a script replies the same with %s', async (_, source) => {
  expect(await admin().eval(scriptText(source), 0)).toEqual(await admin().eval(source, 0));
});

test('a long bracket, which may span lines, is refused', () => {
  expect(() => scriptText('return [[--]]')).toThrow('long bracket');
  expect(() => scriptText('--[==[ a ]==]')).toThrow('long bracket');
});

test('Redis can load every script as it is sent', async () => {
  expect(ALL_SCRIPTS.size).toBeGreaterThan(40);
  for (const { source, sha } of ALL_SCRIPTS.values()) {
    expect(source).not.toMatch(/^\s*--|^\s*$/m);
    expect(await admin().script('LOAD', source)).toBe(sha);
  }
});

test.each(SCRIPT_FILES)('the bundle has the text of %s, and imports what it includes', (path) => {
  const source = readProjectFile(path);
  const code = scriptModule(source);
  const imports = [...code.matchAll(/^import (\w+) from '\.\.\/(.*)';$/gm)].map(([, name = '', file = '']) => ({
    name,
    file,
  }));
  expect(imports).toHaveLength([...source.matchAll(/^ *-- include: /gm)].length);
  const texts = imports.map(({ name, file }) => [name, scriptText(readProjectFile(`lua/${file}`))]);
  const [, exported = ''] = code.split('export default ');
  expect(runInNewContext(exported, Object.fromEntries(texts) as Record<string, string>)).toBe(scriptText(source));
});

describe('an include', () => {
  const included = (
    source: string,
    files: Record<string, string> = { 'lib/a.lua': "-- lib/a: does it\nif x then\n  b('c')\nend\n" },
  ) =>
    withIncludes(source, (file) => {
      const text = files[file];
      if (text === undefined) throw new Error(`no ${file}`);
      return text;
    });

  test('is replaced by the text of its file, with its own indentation', () => {
    expect(included('if y then\n  -- include: lib/a.lua\nend\n')).toBe(
      "if y then\n  -- lib/a: does it\n  if x then\n    b('c')\n  end\nend\n",
    );
  });

  test('is replaced in the sent text', () => {
    expect(scriptText('local notAfter = 0\n-- include: lib/not-after.lua\nreturn 1\n')).toContain(
      'if notAfter > 0 then',
    );
  });

  test('in an included file is refused', () => {
    const files = { 'lib/a.lua': 'x()\n-- include: lib/b.lua\n', 'lib/b.lua': 'y()\n' };
    expect(() => included('-- include: lib/a.lua\n', files)).toThrow(
      'lib/a.lua is included, and includes a file itself',
    );
  });

  test.each(['lock/acquire.lua', '../lib/a.lua', 'lib/a.lua ', 'lib/a'])('of %j is refused', (file) => {
    expect(() => included(`-- include: ${file}\n`)).toThrow('not "-- include: lib/<name>.lua"');
  });

  test('names the variable that its file defines', () => {
    const files = { 'lib/a.lua': '-- lib/a: reads it\n-- Defines  x  what it read\n\nlocal x = 1\n' };
    expect(included('-- include: lib/a.lua (defines x)\nreturn x\n', files)).toContain('local x = 1\nreturn x');
    expect(() => included('-- include: lib/a.lua\n', files)).toThrow('name what it defines');
    expect(() => included('-- include: lib/a.lua (defines y)\n', files)).toThrow('name what it defines');
  });

  test('of a file that does not exist is refused', () => {
    expect(() => scriptText('-- include: lib/none.lua\n')).toThrow('ENOENT');
  });
});
