// @ts-check
const { buildSync } = require('esbuild');
const { readFileSync } = require('node:fs');

/** What the build and the tests import as text: `./page/inspector.css?text`. */
exports.TEXT = /\?text$/;

/**
 * A file of the inspector's page as the server sends it. TypeScript becomes one script with all that it imports. The build
 * and the tests both use this.
 *
 * @param {string} path without `?text`
 * @returns {string}
 */
exports.pageText = (path) => {
  if (!path.endsWith('.ts')) return readFileSync(path, 'utf8');
  const { outputFiles } = buildSync({
    entryPoints: [path],
    bundle: true,
    write: false,
    minify: true,
    charset: 'utf8',
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'silent',
  });
  return /** @type {{ text: string }} */ (outputFiles[0]).text;
};
