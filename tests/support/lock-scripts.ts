import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../lua/lock/', import.meta.url);

/** Name of a script of the plain lock (`hand-off`) to the address and the text it is run by. */
export const LOCK_SCRIPTS: ReadonlyMap<string, { sha: string; source: string }> = new Map(
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.lua'))
    .map((file) => {
      const source = readFileSync(new URL(file, FOLDER), 'utf8');
      return [file.slice(0, -'.lua'.length), { sha: createHash('sha1').update(source).digest('hex'), source }];
    }),
);
