import { readFileSync, writeFileSync } from 'node:fs';
import { startServer } from '../../support/servers/servers.js';
import { counted, functionsOf, measured, RECORD, recorded, TITLES, TOUR, withTable } from './walks.js';

/*
 * Measures the walks, and writes them to walks.json and src/README.md unless one has become longer. With the root of
 * another checkout as argument, it prints what that checkout has, and writes nothing.
 */

const root = process.argv.slice(2);
const server = await startServer();
const walks = counted(await measured(server.url, root).finally(() => server.stop()));
const before = recorded();
let longer = false;
for (const [letter, walk] of Object.entries(walks)) {
  const old = before[letter];
  const [files, functions] = [Object.keys(walk).length, functionsOf(walk)];
  const was = old === undefined ? '' : `, recorded: ${Object.keys(old).length} files, ${functionsOf(old)} functions`;
  console.log(`${letter} (${TITLES[letter] ?? ''}): ${files} files, ${functions} functions${was}`);
  if (old !== undefined && (files > Object.keys(old).length || functions > functionsOf(old))) longer = true;
}
if (root.length === 0) {
  if (longer) {
    console.log('A walk has become longer: nothing is written. Shorten it.');
    process.exitCode = 1;
  } else {
    writeFileSync(RECORD, `${JSON.stringify(walks, null, 2)}\n`);
    writeFileSync(TOUR, withTable(readFileSync(TOUR, 'utf8'), walks));
  }
}
