// @ts-check

/** Commands in this package's scripts that change nothing. A command that is not listed counts as a write. */
const READS = new Set(
  (
    'EXISTS GET GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HSCAN LINDEX LLEN LRANGE PTTL PUBSUB STRLEN TIME TYPE ' +
    'ZCARD ZCOUNT ZRANGE ZRANGEBYSCORE ZRANK ZSCORE'
  ).split(' '),
);

/**
 * The relevant tokens of a script. Comments, strings and publish calls match first, so that their content is skipped.
 */
const WORD =
  /--[^\n]*|redis\.call\(publish\b|(?<call>redis\.p?call)\(\s*(?:'(?<command>\w+)')?|'[^'\n]*'|"[^"\n]*"|\b(?<word>function|for|while|repeat|if|elseif|else|return|end|until)\b|(?<line>\n)/g;

/** Blocks that may run more than once: a line of such a block may run after a later line of it. */
const RUNS_AGAIN = new Set(['function', 'for', 'while', 'repeat']);

/**
 * `writes`: lines of the block with a write after which the script may continue.
 *
 * @typedef {{ kind: string, first: number, last: number, returns: boolean, writes: number[] }} Block
 */

/**
 * The blocks of a script. Each branch of a condition is a block, and the first block is the whole script.
 *
 * @param {string} source
 * @returns {Block[]}
 */
export function blocksOf(source) {
  let line = 1;
  /** @param {string} kind @returns {Block} */
  const open = (kind) => ({ kind, first: line, last: Infinity, returns: false, writes: [] });
  const script = open('script');
  const all = [script];
  const enclosing = [script];
  const current = () => enclosing.at(-1) ?? script;
  /** @param {string} kind */
  const begin = (kind) => {
    enclosing.push(open(kind));
    all.push(current());
  };
  const close = () => {
    const block = enclosing.pop() ?? script;
    block.last = line;
    const ends = block.kind === 'if' && block.returns && !enclosing.some(({ kind }) => kind === 'function');
    if (!ends) current().writes.push(...block.writes);
  };
  for (const { groups = {} } of source.matchAll(WORD)) {
    const { call, command = '', word } = groups;
    if (groups.line !== undefined) line += 1;
    else if (call !== undefined && !READS.has(command)) current().writes.push(line);
    else if (word === 'return') current().returns = true;
    else if (word === 'end' || word === 'until') close();
    else if (word === 'else' || word === 'elseif') {
      close();
      begin('if');
    } else if (word !== undefined) begin(word);
  }
  return all;
}

/**
 * Whether the line repeats, with `redis.call`, a write on the same key that an earlier `redis.pcall` tried. A script
 * repeats a rejected write to report the error of Redis, after the script has undone its own writes.
 *
 * @param {readonly string[]} lines @param {number} line
 */
function reportsRefusal(lines, line) {
  const calls = (lines[line - 1] ?? '').matchAll(/redis\.call\(('(\w+)', \w+)/g);
  const before = lines.slice(0, line - 1).join('\n');
  return [...calls].some(([, call, command = '']) => !READS.has(command) && before.includes(`redis.pcall(${call}`));
}

/**
 * The lines of a script at which it may have written before Redis refuses a command of the line: the first and the last
 * line of each range. At every other line nothing is written, so there is nothing to undo.
 *
 * @param {string} source
 * @returns {[from: number, to: number][]}
 */
export function writtenAt(source) {
  const lines = source.split('\n');
  const blocks = blocksOf(source);
  /** @type {[from: number, to: number][]} */
  const ranges = [];
  for (let line = 1; line <= lines.length; line += 1) {
    const written = blocks.some(({ kind, first, last, writes }) => {
      if (line < first || line > last) return false;
      if (RUNS_AGAIN.has(kind) && writes.length > 0) return true;
      return writes.some((each) => each < line) || writes.filter((each) => each === line).length > 1;
    });
    if (!written || reportsRefusal(lines, line)) continue;
    const range = ranges.at(-1);
    if (range?.[1] === line - 1) range[1] = line;
    else ranges.push([line, line]);
  }
  return ranges;
}
