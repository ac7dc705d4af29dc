/** Commands in this package's scripts that change nothing. A command that is not listed counts as a write. */
const READS = new Set(
  (
    'EXISTS GET HEXISTS HGET HGETALL HKEYS HLEN HMGET LINDEX LLEN LRANGE PTTL PUBSUB TIME TYPE ' +
    'ZCARD ZCOUNT ZRANGE ZRANGEBYSCORE ZSCORE'
  ).split(' '),
);

/**
 * The relevant tokens of a script. Comments, strings and publish calls match first, so that their content is skipped.
 */
const WORD =
  /--[^\n]*|redis\.call\(publish\b|(?<call>redis\.p?call)\(\s*(?:'(?<command>\w+)')?|'[^'\n]*'|"[^"\n]*"|\b(?<word>function|for|while|repeat|if|elseif|else|return|end|until)\b|(?<line>\n)/g;

/** Blocks that may run more than once: a line of such a block may run after a later line of it. */
const RUNS_AGAIN = new Set(['function', 'for', 'while', 'repeat']);

interface Block {
  readonly kind: string;
  readonly first: number;
  last: number;
  returns: boolean;
  /** Lines of the block with a write after which the script may continue. */
  readonly writes: number[];
}

/** The blocks of a script. Each branch of a condition is a block, and the first block is the whole script. */
export function blocksOf(source: string): Block[] {
  let line = 1;
  const open = (kind: string): Block => ({ kind, first: line, last: Infinity, returns: false, writes: [] });
  const script = open('script');
  const all = [script];
  const around = [script];
  const current = (): Block => around.at(-1) ?? script;
  const begin = (kind: string): void => {
    around.push(open(kind));
    all.push(current());
  };
  const close = (): void => {
    const block = around.pop() as Block;
    block.last = line;
    const ends = block.kind === 'if' && block.returns && !around.some(({ kind }) => kind === 'function');
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
 */
function reportsRefusal(source: string, line: number): boolean {
  const lines = source.split('\n');
  const calls = (lines[line - 1] ?? '').matchAll(/redis\.call\(('(\w+)', \w+)/g);
  const before = lines.slice(0, line - 1).join('\n');
  return [...calls].some(([, call, command = '']) => !READS.has(command) && before.includes(`redis.pcall(${call}`));
}

/** Whether the script may have written before Redis rejected a command of this line. */
function mayHaveWritten(source: string, line: number): boolean {
  if (reportsRefusal(source, line)) return false;
  return blocksOf(source).some(({ kind, first, last, writes }) => {
    if (line < first || line > last) return false;
    if (RUNS_AGAIN.has(kind) && writes.length > 0) return true;
    return writes.some((written) => written < line) || writes.filter((written) => written === line).length > 1;
  });
}

/**
 * Whether Redis rejected a command of the script before the script wrote anything. Then there is nothing to undo.
 * Returns `false` if the error does not name the line.
 */
export function isRefusedBeforeWriting(message: string, source: string): boolean {
  const line = /@user_script:\s?(\d+)/.exec(message)?.[1];
  return line !== undefined && !mayHaveWritten(source, Number(line));
}
