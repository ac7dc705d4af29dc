// @ts-check
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { writtenAt } from './first-write.mjs';
import { parseLuaHeader } from './header.mjs';
import { scriptText, withIncludes } from './script-text.cjs';

/*
 * Writes src/redis/scripts/generated.ts from the headers of the scripts. With `--check` it only compares, and fails if
 * they differ.
 */

const SCRIPTS = new URL('../../lua/', import.meta.url);
const TARGET = fileURLToPath(new URL('../../src/redis/scripts/generated.ts', import.meta.url));

/** Types of values by the types of a header. @type {Readonly<Record<string, string>>} */
const VALUES = { int: 'number', string: 'string' };

/** @param {string} text */
const camelCase = (text) => text.replaceAll(/\W+(\w)/g, (_, letter) => String(letter).toUpperCase());

/**
 * @param {readonly import('./header.mjs').LuaParameter[]} parameters
 * @param {(type: string | undefined) => string} valueOf
 */
const tuple = (parameters, valueOf) =>
  `[${parameters
    .map(
      ({ name, type, variable, inMs }) =>
        `${variable ? '...' : ''}${camelCase(name)}${inMs ? 'Ms' : ''}: ${element(valueOf(type), variable)}`,
    )
    .join(', ')}]`;

/** @param {string} value @param {boolean} variable */
const element = (value, variable) => (variable ? (value.includes('|') ? `(${value})[]` : `${value}[]`) : value);

/** @param {string} file from the folder of the scripts, such as `lock/acquire.lua` */
function binding(file) {
  const source = readFileSync(new URL(file, SCRIPTS), 'utf8');
  const { name, keys, args } = parseLuaHeader(withIncludes(source));
  const text = scriptText(source);
  const place = args.findIndex((arg) => arg.name === 'notAfter');
  const given = args.filter((arg) => arg.name !== 'notAfter');
  if (place > 0 && place < given.length)
    throw new Error(`${file}: notAfter is neither the first nor the last argument`);
  const id = camelCase(name);
  const keyTypes = tuple(keys, () => 'string');
  const argTypes = tuple(given, (type) => VALUES[type ?? ''] ?? 'string | number');
  return {
    id,
    head: `import ${id}Source from '../../../lua/${file}';`,
    body: `export const ${id}: Script<${keyTypes}, ${argTypes}> = {
      name: '${name}',
      source: ${id}Source,
      sha: '${createHash('sha1').update(text).digest('hex')}',
      notAfter: ${place < 0 ? 'undefined' : place === 0 ? "'first'" : "'last'"},
      writtenAt: ${JSON.stringify(writtenAt(text))},
    };`,
  };
}

/** The text of the file that holds all bindings. */
export async function bindings() {
  const files = readdirSync(SCRIPTS, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.lua') && !path.startsWith('lib/'))
    .sort();
  const all = files.map(binding);
  const text = `// Generated from the headers in lua by npm run suite -- bindings. Do not edit.
import type { Script } from './script.js';
${all.map(({ head }) => head).join('\n')}

${all.map(({ body }) => body).join('\n\n')}
`;
  return format(text, { ...(await resolveConfig(TARGET)), parser: 'typescript' });
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const text = await bindings();
  if (!argv.includes('--check')) writeFileSync(TARGET, text);
  else if (readFileSync(TARGET, 'utf8') !== text) {
    console.log('src/redis/scripts/generated.ts differs from the headers in lua: npm run suite -- bindings');
    process.exitCode = 1;
  }
}
