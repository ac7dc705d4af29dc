import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_PAGES, withFigures } from './pages.js';
import { readResults } from './results.js';

/* npm run bench:pages: writes the figures of results.json into the pages. `npm run suite -- pictures` then draws the charts. */

const results = readResults();
for (const page of BENCH_PAGES) {
  const path = join(import.meta.dirname, '../..', page);
  writeFileSync(path, withFigures(readFileSync(path, 'utf8'), results));
  console.log(page);
}
