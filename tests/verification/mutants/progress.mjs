// @ts-check
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';

/** @param {string} folder of the project that is tested */
export const progressFile = (folder) => join(folder, 'progress.jsonl');

/** A reporter that says which tests have begun and failed: a run that comes to no end has no other results. */
export default class Progress {
  /** @param {{ rootDir: string }} config */
  constructor({ rootDir }) {
    /** @type {(name: string, status: string) => void} */
    this.note = (name, status) => appendFileSync(progressFile(rootDir), `${JSON.stringify({ name, status })}\n`);
  }

  /** @type {(test: unknown, info: { fullName: string }) => void} */
  onTestCaseStart(_, { fullName }) {
    this.note(fullName, 'begun');
  }

  /** @type {(test: unknown, result: { fullName: string, status: string }) => void} */
  onTestCaseResult(_, { fullName, status }) {
    this.note(fullName, status);
  }
}
