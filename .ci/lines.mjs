// @ts-check
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

/* How large each part of the source is: its lines, those of them with code, and its interfaces. `npm run check` prints it. */

const ROOT = new URL('..', import.meta.url);

/** The parts by name, and the folders whose files belong to them. The core is the rest of `src`. */
const FOLDERS = {
  permits: ['src/synchronizers/', 'src/permits/'],
  several: ['src/several/'],
  inspection: ['src/inspection/'],
  integrations: ['src/integrations/'],
  cli: ['src/cli/'],
  lua: ['lua/'],
};

/** What a generator writes begins with this. */
const GENERATED = /^(?:\/\/|\/\*|--) Generated\b/;
const COMMENT_OR_BLANK = /^\s*(?:$|\/\/|\/\*|\*|--)/;

/** @typedef {{ lines: number, code: number, interfaces: number }} Size */

/** @returns {Record<string, Size>} */
export function sizes() {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', 'src', 'lua'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  /** @type {Record<string, Size>} */
  const parts = {};
  for (const name of ['core', ...Object.keys(FOLDERS)]) parts[name] = { lines: 0, code: 0, interfaces: 0 };
  for (const path of listed.split('\0').filter((each) => /\.(?:ts|lua)$/.test(each))) {
    const part = Object.entries(FOLDERS).find(([, folders]) => folders.some((folder) => path.startsWith(folder)));
    const size = parts[part?.[0] ?? 'core'];
    const text = read(path);
    if (size === undefined || text === undefined || GENERATED.test(text)) continue;
    const lines = text.split('\n').slice(0, -1);
    size.lines += lines.length;
    size.code += lines.filter((line) => !COMMENT_OR_BLANK.test(line)).length;
    size.interfaces += text.match(/^(?:export )?interface /gm)?.length ?? 0;
  }
  return parts;
}

/** @param {string} path @returns {string | undefined} nothing for a file that is deleted and not yet committed */
function read(path) {
  try {
    return readFileSync(new URL(path, ROOT), 'utf8');
  } catch {
    return undefined;
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  for (const [part, { lines, code, interfaces }] of Object.entries(sizes())) {
    console.log(`${part}: ${lines} lines, ${code} of them code, ${interfaces} interfaces`);
  }
}
