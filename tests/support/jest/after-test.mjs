// @ts-check

/** Where support/redis.ts leaves its check for the environment that the test file runs in. */
export const AFTER_TEST = Symbol.for('holdfast.afterTest');
