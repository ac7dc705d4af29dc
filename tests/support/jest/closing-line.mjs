// @ts-check

/**
 * @typedef {'numPassedTests' | 'numFailedTests' | 'numPendingTests' | 'numTodoTests' | 'numRuntimeErrorTestSuites'}
 *   Figure
 */

/** Ends a run with one plain line for programs that read the log. A file that did not load counts as failed. */
export default class ClosingLine {
  /**
   * @param {unknown} _contexts
   * @param {Record<Figure, number>} results
   */
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    const line = `${results.numPassedTests} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`;
    // Jest prints its own summary after the reporters.
    process.once('exit', () => console.log(line));
  }
}
