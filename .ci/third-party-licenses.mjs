// @ts-check
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SUBPATHS } from './subpaths.mjs';
import { INLINED } from './tsdown.config.mjs';

/*
 * The build carries the code of packages whose licence asks for its text to go along. Which ones is read from the build's
 * own configuration, so that a package added there cannot be forgotten here.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const inlined = [
  ...INLINED.map((name) => ({ name, files: 'dist/index.cjs' })),
  ...Object.entries(SUBPATHS).flatMap(([subpath, { inlined: names = [] }]) =>
    names.map((name) => ({ name, files: `dist/${subpath}.cjs and dist/${subpath}.mjs` })),
  ),
].sort((a, b) => a.name.localeCompare(b.name));

const sections = inlined.map(({ name, files }) => {
  const folder = join(root, 'node_modules', name);
  /** @type {{ version: string, license: string }} */
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[sc]e(\.|$)/i.test(entry));
  if (!file) throw new Error(`${name} ships no licence text`);
  return `${name} ${version} (${license}), in ${files}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
});

const rule = `\n${'-'.repeat(80)}\n\n`;
const preface = 'The files of this package contain code of the following packages.\n';
writeFileSync(join(root, 'THIRD-PARTY-LICENSES'), [preface, ...sections].join(rule));
