import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResults } from '../../bench/results/results.js';
import { drawAll } from './all.js';

/* npm run pictures: writes the pictures of the guide beside this file. */

for (const [name, svg] of drawAll(readResults())) {
  writeFileSync(join(import.meta.dirname, name), svg);
  console.log(`docs/pictures/${name}`);
}
