const { createHash } = require('node:crypto');
const { scriptText } = require('../../../.ci/script-text.cjs');

module.exports = {
  process: (text) => ({ code: `export default ${JSON.stringify(scriptText(text))};` }),
  // Jest's own key knows nothing of this function: what an earlier one made of a script would be used again.
  getCacheKey: (text) => createHash('sha1').update(`lua ${scriptText}\n${text}`).digest('hex'),
};
