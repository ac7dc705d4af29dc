export interface LuaParameter {
  readonly index: number;
  /** `KEYS[2..n]`: this and all that follow. */
  readonly variable: boolean;
  readonly name: string;
}

export interface LuaHeader {
  readonly name: string;
  readonly keys: readonly LuaParameter[];
  readonly args: readonly LuaParameter[];
  /** The replies of the script, as its Returns lines begin: `1`, `-3`, `nil`, `n`, `an array ...`. */
  readonly returns: readonly string[];
  readonly body: string;
}

/** Reads the comment a script begins with. Throws, naming the line, where it departs from the fixed form. */
export function parseLuaHeader(text: string): LuaHeader {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('--'));
  if (lines[end] !== '') throw new Error('a blank line ends the header');
  const [first = '', ...rest] = lines.slice(0, end);
  const name = /^-- ([a-z-]+\/[a-z-]+): \S.*$/.exec(first)?.[1];
  if (!name) throw new Error(`not "-- folder/name: what it does": ${first}`);

  const sections = ['KEYS', 'ARGV', 'Returns', 'Source'];
  const keys: LuaParameter[] = [];
  const args: LuaParameter[] = [];
  const returns: string[] = [];
  let section = -1;
  for (const line of rest) {
    const label = /^-- (KEYS|ARGV|Returns|Source)(?=[ [])/.exec(line)?.[1];
    const next = label === undefined ? section : sections.indexOf(label);
    if (next < section) throw new Error(`out of order (${sections.join(', ')}): ${line}`);
    section = next;
    const content = line.slice(2 + (label === undefined ? 0 : label.length + 1)).trimEnd();
    if (label === 'KEYS' || label === 'ARGV') {
      (label === 'KEYS' ? keys : args).push(parseParameter(line, label === 'KEYS' ? keys : args));
    } else if (sections[section] === 'Returns') {
      // A continued description stands further in than the values do.
      if (label !== undefined || /^ {9,10}\S/.test(content)) returns.push(content.trim().split(/ {2,}/)[0]!);
    } else if (label === undefined) {
      if (section < 0) throw new Error(`unexpected line: ${line}`);
    }
  }
  if (keys.length === 0) throw new Error('no KEYS');
  const body = lines.slice(end + 1).join('\n');
  // What a script includes says in its own header with what it ends the script.
  for (const [, value] of body.matchAll(/^ *-- Returns {2}(\S+)/gm)) returns.push(value!);
  if (returns.length === 0) throw new Error('no Returns');
  return { name, keys, args, returns, body };
}

function parseParameter(line: string, before: readonly LuaParameter[]): LuaParameter {
  const [address = '', name, ...description] = line.slice(3).split(/ {2,}/);
  const [, index, variable] = /^(?:KEYS|ARGV)\[(\d+)(\.\.n)?\]$/.exec(address) ?? [];
  // A fixed parameter has a name, a type and a meaning. A variable tail has a name and a description.
  if (!index || !name || description.length < (variable ? 1 : 2))
    throw new Error(`not "index  name  type  meaning": ${line}`);
  if (Number(index) !== before.length + 1 || before.at(-1)?.variable) throw new Error(`out of order: ${line}`);
  return { index: Number(index), variable: variable !== undefined, name };
}

/** Returns one line for each difference between the body of a script and its header. */
export function bodyDepartures({ keys, args, returns, body }: LuaHeader): string[] {
  const found: string[] = [];
  const code = body.replace(/--.*/g, '');
  const naming = /^(?:local [^\n]*\n)+/.exec(code)?.[0] ?? '';
  const rest = code.slice(naming.length);
  for (const [table, parameters] of [
    ['KEYS', keys],
    ['ARGV', args],
  ] as const) {
    const named = new Map<number, string>();
    for (const [, left, right] of naming.matchAll(/^local (.+?) = (.+)$/gm)) {
      const values = right!.split(/,\s*(?![^(]*\))/);
      left!.split(/,\s*/).forEach((name, position) => {
        const index = new RegExp(`^(?:tonumber\\()?${table}\\[(\\d+)\\]\\)?$`).exec(values[position] ?? '')?.[1];
        if (index !== undefined) named.set(Number(index), name);
      });
    }
    for (const { index, variable, name } of parameters) {
      if (variable) {
        if (!new RegExp(`\\b${table}\\[(?!\\d+\\])|unpack\\(${table}\\b`).test(code))
          found.push(`${table}[${index}..n] is not read`);
      } else if (named.get(index) !== name) {
        found.push(`${table}[${index}] is ${name} in the header, ${named.get(index) ?? 'not named'} in the body`);
      } else if ((code.match(new RegExp(`\\b${name}\\b`, 'g')) ?? []).length < 2) {
        found.push(`${name} is named and never used`);
      }
    }
    for (const [, index] of code.matchAll(new RegExp(`\\b${table}\\[(\\d+)\\]`, 'g'))) {
      const known = parameters.some((parameter) => parameter.index === Number(index) && !parameter.variable);
      if (!known) found.push(`${table}[${index}] is not in the header`);
    }
    if (new RegExp(`\\b${table}\\[\\d+\\]`).test(rest)) found.push(`${table} is used by number below the naming lines`);
    if (new RegExp(`\\b${table}\\b`).test(rest) && !parameters.some(({ variable }) => variable)) {
      found.push(`${table} is looped over without a variable tail in the header`);
    }
  }

  const isLiteral = (value: string) => /^(-?\d+|nil)$/.test(value);
  // The results of local functions are no replies of the script. Errors are described in words.
  const script = code.replace(/^local function .*\n(?: .*\n)*end$/gm, '');
  const answered = [...script.matchAll(/\breturn +(?!redis\.error_reply)(.+?)(?: +end)?$/gm)].map(([, value]) =>
    value!.trim(),
  );
  for (const value of new Set([...answered, ...returns].filter(isLiteral))) {
    if (!returns.includes(value)) found.push(`it returns ${value}, which the header does not say`);
    if (!answered.includes(value)) found.push(`the header says it returns ${value}, the body never does`);
  }
  if (answered.every(isLiteral) !== returns.every(isLiteral)) {
    found.push('a value that is worked out is in the header and not in the body, or the other way round');
  }

  for (const [, command] of code.matchAll(/redis\.p?call\('([^']*)'/g)) {
    if (command !== command!.toUpperCase()) found.push(`${command} is not in upper case`);
  }
  if (/"|\t/.test(code)) found.push('double quotes or tabs');
  if (code.split('\n').some((line) => /^ */.exec(line)![0].length % 2 === 1)) found.push('not indented by two spaces');
  return found;
}
