// @ts-check
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const SCRIPTS = join(__dirname, '..', '..', 'lua');
/** A line that stands for the text of a file below `lua/lib`. It names the variable that the file defines, if any. */
const INCLUDE = /^( *)-- include: (.*?)(?: \(defines (\w+)\))?\n/gm;

/**
 * A script with the text of what it includes in place. What is included includes nothing itself.
 *
 * @param {string} source
 * @param {(file: string) => string} read
 */
exports.withIncludes = (source, read = (file) => readFileSync(join(SCRIPTS, file), 'utf8')) =>
  source.replace(INCLUDE, (_, indent, file, defined) => {
    if (!/^lib\/[a-z-]+\.lua$/.test(file)) throw new Error(`not "-- include: lib/<name>.lua": ${file}`);
    const text = read(file);
    if (text.search(INCLUDE) >= 0) throw new Error(`${file} is included, and includes a file itself`);
    if (/^-- Defines +(\w+)/m.exec(text)?.[1] !== defined)
      throw new Error(`${file}: name what it defines at its include`);
    return text.replace(/^(?=.)/gm, indent);
  });

/** A string, which may contain dashes, or a comment. */
const STRING_OR_COMMENT = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|--[^\n]*/g;

/**
 * What is sent of a script: with what it includes, without comments, indentation and blank lines. The build and the tests
 * both use this, so a script has one address.
 *
 * @param {string} source
 */
exports.scriptText = (source) => linesOf(exports.withIncludes(source));

/** @param {string} text */
function linesOf(text) {
  // A long string or comment may span lines; no script needs one.
  if (/\[=*\[/.test(text)) throw new Error('a script has a long bracket, which this cannot read');
  const code = text.replace(STRING_OR_COMMENT, (found) => (found.startsWith('--') ? '' : found));
  const lines = code.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join('\n');
}

/**
 * A module whose default export is the text of a script. It imports what the script includes, so that a bundle of several
 * scripts has each included file once.
 *
 * @param {string} source
 */
exports.scriptModule = (source) => {
  // It refuses what cannot be included.
  exports.withIncludes(source);
  /** @type {string[]} */
  const imports = [];
  /** @type {string[]} */
  const parts = [];
  let at = 0;
  for (const { index, 0: line, 2: file } of source.matchAll(INCLUDE)) {
    parts.push(JSON.stringify(linesOf(source.slice(at, index))));
    // Every script is in a folder beside that of the included files.
    imports.push(`import lib${imports.length} from '../${file}';`);
    parts.push(`lib${imports.length - 1}`);
    at = index + line.length;
  }
  parts.push(JSON.stringify(linesOf(source.slice(at))));
  const texts = parts.filter((part) => part !== '""');
  return `${imports.join('\n')}\nexport default ${texts.length === 1 ? texts[0] : `[${texts.join(', ')}].join('\\n')`};`;
};
