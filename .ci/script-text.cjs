// @ts-check
/** A string, which may contain dashes, or a comment. */
const STRING_OR_COMMENT = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|--[^\n]*/g;

/**
 * What is sent of a script: without comments, indentation and blank lines. The build and the tests both use this, so a
 * script has one address.
 *
 * @param {string} source
 */
exports.scriptText = (source) => {
  // A long string or comment may span lines; no script needs one.
  if (/\[=*\[/.test(source)) throw new Error('a script has a long bracket, which this cannot read');
  const code = source.replace(STRING_OR_COMMENT, (found) => (found.startsWith('--') ? '' : found));
  const lines = code.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join('\n');
};
