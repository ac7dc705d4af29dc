import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawAll } from './all.js';

/* npm run pictures: writes the pictures of the guide beside this file. */

const performance = readFileSync(join(import.meta.dirname, '../performance.md'), 'utf8');
for (const [name, svg] of drawAll(performance)) {
  writeFileSync(join(import.meta.dirname, name), svg);
  console.log(`docs/pictures/${name}`);
}
