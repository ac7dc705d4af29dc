/**
 * What `await using` calls. A realm may lack the symbol, such as a `vm` context of Node 20; esbuild and Babel look for
 * this one there.
 */
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);
