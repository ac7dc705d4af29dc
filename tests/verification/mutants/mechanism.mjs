// @ts-check
/**
 * A mechanism, how to take it out, and the tests that must notice.
 *
 * @typedef {{ name: string, file: string, find: string, put: string, tests: string[] }} Mechanism
 */

/** @type {(name: string, file: string, find: string, put: string, ...tests: string[]) => Mechanism} */
export const without = (name, file, find, put, ...tests) => ({ name, file, find, put, tests });
