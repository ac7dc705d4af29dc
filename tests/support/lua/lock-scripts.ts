import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { scriptText } from '../../../.ci/lua/script-text.cjs';

type Scripts = ReadonlyMap<string, { sha: string; source: string }>;

function scriptsIn(folder: string): Scripts {
  const url = new URL(`../../../lua/${folder}/`, import.meta.url);
  return new Map(
    readdirSync(url)
      .filter((file) => file.endsWith('.lua'))
      .map((file) => {
        const source = scriptText(readFileSync(new URL(file, url), 'utf8'));
        return [file.slice(0, -'.lua'.length), { sha: createHash('sha1').update(source).digest('hex'), source }];
      }),
  );
}

/** Name of a script of the plain lock (`hand-off`) to the address and the text it is run by. */
export const LOCK_SCRIPTS = scriptsIn('lock');
const FOLDERS = readdirSync(new URL('../../../lua/', import.meta.url)).filter((folder) => folder !== 'lib');
/** The scripts of all kinds, by folder and name (`fair-lock/acquire`). */
export const ALL_SCRIPTS: Scripts = new Map(
  FOLDERS.flatMap((folder) => [...scriptsIn(folder)].map(([name, script]) => [`${folder}/${name}`, script] as const)),
);
