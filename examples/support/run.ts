/*
 * npm run example               lists the examples, each with its question
 * npm run example -- try-lock   runs one
 */
import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('../', import.meta.url);
const examples = readdirSync(folder)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length));

const name = process.argv[2]?.replace(/\.ts$/, '');
if (name === undefined) {
  const width = Math.max(...examples.map((example) => example.length));
  for (const example of examples) {
    const [question] = readFileSync(new URL(`${example}.ts`, folder), 'utf8').split('\n');
    console.log(`${example.padEnd(width)}  ${question!.replace(/^\/\/ /, '')}`);
  }
} else if (examples.includes(name)) {
  await import(new URL(`${name}.ts`, folder).href);
} else {
  console.error(`There is no example ${name}; there are ${examples.join(', ')}.`);
  process.exitCode = 1;
}
