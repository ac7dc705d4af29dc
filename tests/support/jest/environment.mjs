// @ts-check
import { TestEnvironment } from 'jest-environment-node';
import { AFTER_TEST } from './after-test.mjs';
import { NEVER } from './never.mjs';

/**
 * Runs the leak check after the hooks of each test. Jest runs `afterEach` hooks in the order of their definition, so that
 * a hook of the support code would run before the hooks of the file, which close its clients.
 */
export default class Environment extends TestEnvironment {
  /** @param {{ name: string, test?: { errors: unknown[] } }} event */
  async handleTestEvent({ name, test }) {
    if (name !== 'test_done') return;
    const { [AFTER_TEST]: check } = /** @type {{ [AFTER_TEST]?: () => Promise<void> }} */ (this.global);
    try {
      await check?.();
    } catch (error) {
      // What a failed test leaves is a consequence: the gate may repeat the test.
      const isConsequence = test !== undefined && test.errors.length > 0;
      test?.errors.push(isConsequence ? String(error).replace(NEVER, 'After the failure:') : error);
    }
  }
}
