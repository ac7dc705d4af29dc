// @ts-check
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

/*
 * What a run of Jest does, for the runner of the steps (.ci/suites/repeat.mjs): one line of JSON for each entry, in the file
 * that HOLDFAST_TEST_RECORD names. The processes of the tests do not inherit it: a run of Jest inside a test is not recorded.
 */

const record = process.env.HOLDFAST_TEST_RECORD;
delete process.env.HOLDFAST_TEST_RECORD;

/** @param {object} entry */
export function note(entry) {
  if (record !== undefined) appendFileSync(record, `${JSON.stringify(entry)}\n`);
}

/** @typedef {{ path: string, context: { config: { rootDir: string } } }} TestFile */

/** @param {TestFile} test */
const fileOf = ({ path, context }) => relative(context.config.rootDir, path).replaceAll('\\', '/');

/** Notes the begin and the end of each file, with its failures, and the end of the run. */
export default class Record {
  /** @param {TestFile} test */
  onTestFileStart(test) {
    note({ what: 'begun', file: fileOf(test) });
  }

  /**
   * @param {TestFile} test
   * @param {{
   *   testResults: { status: string, fullName: string, failureMessages: string[] }[],
   *   testExecError?: unknown,
   *   failureMessage?: string | null,
   * }} result
   */
  onTestFileResult(test, { testResults, testExecError, failureMessage }) {
    const failures = testResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => ({ title: fullName, message: failureMessages.join('\n') }));
    // The file did not load, or its process died.
    if (testExecError != null) failures.push({ title: 'the file did not run', message: failureMessage ?? '' });
    note({ what: 'ended', file: fileOf(test), failures });
  }

  onRunComplete() {
    note({ what: 'complete' });
  }
}
