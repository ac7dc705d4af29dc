// @ts-check

/**
 * A key or an argument of a script. `variable`: `KEYS[2..n]`, this one and all that follow. The type is undefined where a
 * variable tail has none, because its values differ in type. `inMs`: a number of milliseconds.
 *
 * @typedef {{ index: number, variable: boolean, name: string, type: string | undefined, inMs: boolean }} LuaParameter
 *
 * `returns`: the replies of the script, as its Returns lines begin: `1`, `-3`, `nil`, `n`, `an array ...`.
 * @typedef {{
 *   name: string,
 *   keys: readonly LuaParameter[],
 *   args: readonly LuaParameter[],
 *   returns: readonly string[],
 *   body: string,
 * }} LuaHeader
 */

const SECTIONS = ['KEYS', 'ARGV', 'Returns', 'Source'];
const TYPES = ['any', 'hash', 'int', 'list', 'string', 'zset'];

/**
 * Reads the comment that a script begins with.
 *
 * @param {string} text
 * @returns {LuaHeader}
 * @throws {Error} names the line that departs from the fixed form
 */
export function parseLuaHeader(text) {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('--'));
  if (lines[end] !== '') throw new Error('a blank line ends the header');
  const [first = '', ...rest] = lines.slice(0, end);
  const name = /^-- ([a-z-]+\/[a-z-]+): \S.*$/.exec(first)?.[1];
  if (!name) throw new Error(`not "-- folder/name: what it does": ${first}`);

  /** @type {LuaParameter[]} */
  const keys = [];
  /** @type {LuaParameter[]} */
  const args = [];
  /** @type {string[]} */
  const returns = [];
  let section = -1;
  for (const line of rest) {
    const label = /^-- (KEYS|ARGV|Returns|Source)(?=[ [])/.exec(line)?.[1];
    const next = label === undefined ? section : SECTIONS.indexOf(label);
    if (next < section) throw new Error(`out of order (${SECTIONS.join(', ')}): ${line}`);
    section = next;
    const content = line.slice(2 + (label === undefined ? 0 : label.length + 1)).trimEnd();
    if (label === 'KEYS' || label === 'ARGV') {
      const parameters = label === 'KEYS' ? keys : args;
      parameters.push(parseParameter(line, parameters));
    } else if (SECTIONS[section] === 'Returns') {
      // A continued description stands further in than the values do.
      if (label !== undefined || /^ {9,10}\S/.test(content)) returns.push(content.trim().split(/ {2,}/)[0] ?? '');
    } else if (label === undefined && section < 0) {
      throw new Error(`unexpected line: ${line}`);
    }
  }
  if (keys.length === 0) throw new Error('no KEYS');
  const body = lines.slice(end + 1).join('\n');
  // What a script includes says in its own header with what it ends the script.
  for (const [, value = ''] of body.matchAll(/^ *-- Returns {2}(\S+)/gm)) returns.push(value);
  if (returns.length === 0) throw new Error('no Returns');
  return { name, keys, args, returns, body };
}

/** @param {string} line @param {readonly LuaParameter[]} before @returns {LuaParameter} */
function parseParameter(line, before) {
  const [address = '', name, ...description] = line.slice(3).split(/ {2,}/);
  const [, index, variable] = /^(?:KEYS|ARGV)\[(\d+)(\.\.n)?\]$/.exec(address) ?? [];
  // A fixed parameter has a name, a type and a meaning. A variable tail has a name and a description.
  if (!index || !name || description.length < (variable ? 1 : 2))
    throw new Error(`not "index  name  type  meaning": ${line}`);
  if (Number(index) !== before.length + 1 || before.at(-1)?.variable) throw new Error(`out of order: ${line}`);
  const type = TYPES.find((each) => each === description[0]);
  const inMs = type === 'int' && /^ms\b/.test(description[1] ?? '');
  return { index: Number(index), variable: variable !== undefined, name, type, inMs };
}
