/**
 * The symbol of the method that `await using` calls. A realm may lack it, such as a `vm` context of Node 20. The code that
 * esbuild and Babel generate looks for `Symbol.for('Symbol.asyncDispose')` there.
 */
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);
