const { createHash } = require('node:crypto');
const { pageText } = require('../../../.ci/page-text.cjs');

/** @param {string} path */
const code = (path) => `export default ${JSON.stringify(pageText(path))};`;

module.exports = {
  process: (_, path) => ({ code: code(path) }),
  // The text of the script depends on the files that it imports.
  getCacheKey: (_, path) => createHash('sha1').update(code(path)).digest('hex'),
};
