import type { LuaHeader } from '../../../.ci/lua/header.mjs';

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
  const script = code.replace(/^( *)local function .*\n(?:\1 .*\n)*\1end$/gm, '');
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
