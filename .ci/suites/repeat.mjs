// @ts-check
import { NEVER } from '../../tests/support/jest/never.mjs';

/**
 * What the runs of Jest in a step did, and which files may run once more. See tests/support/jest/record.mjs.
 *
 * @typedef {{ title: string, message: string }} Failure
 * @typedef {(
 *   | { what: 'run', seed: string }
 *   | { what: 'begun', file: string }
 *   | { what: 'ended', file: string, failures: Failure[] }
 *   | { what: 'complete' }
 * )} Entry
 * @typedef {{
 *   runs: number,
 *   complete: number,
 *   ended: number,
 *   unfinished: string[],
 *   failures: Map<string, { seed: string, failures: Failure[] }>,
 * }} Record
 */

/** Above this number of files the step is broken, not unlucky. */
const MOST_FILES = 5;
/** Files whose random schedules, models and peers find what happens once in a thousand runs. */
const NEVER_FILES = /^tests\/(interop|verification|unit\/ownership)\//;
/** The words of the shared checks (tests/support/serious.ts), and of Jest for a test that never settled. */
const NEVER_MESSAGES = [NEVER, 'Exceeded timeout of'];

/** @param {string} text the lines of a record @returns {Record} */
export function readRecord(text) {
  /** @type {Record} */
  const record = { runs: 0, complete: 0, ended: 0, unfinished: [], failures: new Map() };
  let seed = '';
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const entry = /** @type {Entry} */ (JSON.parse(line));
    switch (entry.what) {
      case 'run':
        record.runs += 1;
        seed = entry.seed;
        break;
      case 'begun':
        record.unfinished.push(entry.file);
        break;
      case 'ended': {
        record.ended += 1;
        record.unfinished.splice(record.unfinished.indexOf(entry.file), 1);
        const before = record.failures.get(entry.file)?.failures ?? [];
        const failures = [...before, ...entry.failures];
        if (failures.length > 0) record.failures.set(entry.file, { seed, failures });
        break;
      }
      case 'complete':
        record.complete += 1;
    }
  }
  return record;
}

/**
 * Why the failed files of a step do not run once more; `undefined`: they do.
 *
 * @param {Record} record
 * @returns {string | undefined}
 */
export function whyFinal({ runs, complete, unfinished, failures }) {
  if (failures.size === 0) return 'no test failed';
  if (complete < runs || unfinished.length > 0) return 'a run of Jest did not end';
  if (failures.size > MOST_FILES) return `more than ${MOST_FILES} files failed`;
  for (const [file, { failures: ofFile }] of failures) {
    if (NEVER_FILES.test(file)) return `${file} is never repeated`;
    const serious = ofFile.find(({ message }) => NEVER_MESSAGES.some((words) => message.includes(words)));
    if (serious !== undefined) return `"${serious.title}" is never repeated: ${firstLine(serious.message)}`;
  }
  return undefined;
}

/** The first line that says something, without the colors of a terminal. @param {string} message */
export function firstLine(message) {
  const lines = message.replace(/\u001b\[\d*m/g, '').split('\n');
  return lines.map((line) => line.trim()).find((line) => line !== '') ?? 'no message';
}
