import { describe, expect, test } from '@jest/globals';
import { blocksOf, writtenAt } from '../../../.ci/lua/first-write.mjs';
import { readScript, SCRIPT_FILES } from './script-files.js';

const READ = "redis.call('HGET', k, f)";
const WRITE = "redis.call('HSET', k, f, 1)";

/** The lines of a script at which a refusal leaves nothing written. */
function cleanLines(...lines: string[]): number[] {
  const written = writtenAt(lines.join('\n'));
  return lines.flatMap((_, at) => (written.some(([from, to]) => at + 1 >= from && at + 1 <= to) ? [] : [at + 1]));
}

describe('a refused command left nothing written', () => {
  test.each([
    ['up to the first write itself', [READ, WRITE, READ, WRITE], [1, 2]],
    ['up to a command that only a variable names', [READ, 'redis.call(command, k, m)', READ], [1, 2]],
    ['behind a message, which is no write', [READ, 'redis.call(publish, c, m)', WRITE, READ], [1, 2, 3]],
    [
      'where a script reports what redis.pcall was refused, after it has undone its writes',
      [
        WRITE,
        "local a = redis.pcall('INCRBY', s, n)",
        WRITE,
        "redis.call('INCRBY', s, 1)",
        "redis.call('INCRBY', t, 1)",
      ],
      [1, 4],
    ],
    ['not where redis.pcall was refused a read', ["redis.pcall('HGET', k, f)", WRITE, READ], [1, 2]],
    ['anywhere in a script that only reads', [READ, `-- ${WRITE}`, READ, "return 'for'"], [1, 2, 3, 4]],
    [
      'behind a branch that writes and returns',
      ['if a then', WRITE, READ, 'return', 'end', READ, WRITE, READ],
      [1, 2, 6, 7],
    ],
    [
      'not in or behind the other branch of one that writes and goes on',
      ['if a then', WRITE, 'else', READ, 'end', READ],
      [1, 2],
    ],
    [
      'not behind another branch that returns',
      ['if a then', 'return', 'elseif b then', WRITE, 'end', READ],
      [1, 2, 3, 4],
    ],
    ['nowhere in a loop that writes', [READ, 'for i = 1, 2 do', READ, WRITE, 'end', READ], [1]],
    ['in a loop that reads', ['while a do', READ, 'end', WRITE], [1, 2, 3, 4]],
    [
      'nowhere in a function that writes',
      ['local function f()', READ, 'if a then', WRITE, 'return', 'end', 'end', READ],
      [],
    ],
    ['nowhere in a repeat that writes', ["local a = 'end'", 'repeat', READ, WRITE, 'until a', READ], [1]],
    ['not at a line with two writes', [READ, `${WRITE} ${WRITE}`], [1]],
    ['at either of two branches in one line', [`if a then ${WRITE} else ${WRITE} end`], []],
  ])('%s', (_, lines, clean) => {
    expect(cleanLines(...lines)).toEqual(clean);
  });
});

test('every block of every script is closed', () => {
  expect(SCRIPT_FILES.length).toBeGreaterThan(40);
  for (const path of SCRIPT_FILES) {
    const [script, ...blocks] = blocksOf(readScript(path));
    expect(script?.last).toBe(Infinity);
    expect(blocks.filter(({ last }) => last === Infinity)).toEqual([]);
  }
});
