// @ts-check
import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];

export const ADVICE = `Install one with the command for your system and run this again:
  Debian   sudo apt-get install -y chromium
  Alpine   sudo apk add chromium
  Fedora   sudo dnf install -y chromium
  Arch     sudo pacman -S chromium
or set HOLDFAST_CHROMIUM to the path of a Chromium or a Chrome.`;

/**
 * A file may be there and not run: Ubuntu has a script of this name that only says how to install a snap.
 *
 * @param {string} path
 */
function runs(path) {
  try {
    accessSync(path, constants.X_OK);
    return /\d+\.\d+/.test(execFileSync(path, ['--version'], { encoding: 'utf8', timeout: 30_000, stdio: 'pipe' }));
  } catch {
    return false;
  }
}

/**
 * The path of the Chromium that the tests use: the one that HOLDFAST_CHROMIUM names, or the first on the PATH.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function findChromium(env = process.env) {
  const named = env.HOLDFAST_CHROMIUM;
  if (named) {
    // Fail: another browser would be a test of something else.
    if (!runs(named)) throw new Error(`HOLDFAST_CHROMIUM is ${named}, which is no browser that runs here.\n${ADVICE}`);
    return named;
  }
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(runs);
}
