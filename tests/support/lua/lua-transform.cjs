const { createHash } = require('node:crypto');
const { scriptText } = require('../../../.ci/lua/script-text.cjs');

module.exports = {
  process: (text) => ({ code: `export default ${JSON.stringify(scriptText(text))};` }),
  // Jest's own key depends neither on this function nor on included files: an outdated text would be used again.
  getCacheKey: (text) =>
    createHash('sha1')
      .update(`lua\n${scriptText(text)}`)
      .digest('hex'),
};
