import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('../../dist/cli.mjs', import.meta.url));

/** Whether a browser can be opened here: somebody looks at a terminal, on a machine with a screen. */
function hasScreen({ CI, DISPLAY, SSH_CONNECTION, WAYLAND_DISPLAY }: NodeJS.ProcessEnv): boolean {
  if (!process.stdout.isTTY || CI !== undefined || SSH_CONNECTION !== undefined) return false;
  return process.platform === 'darwin' || process.platform === 'win32' || (DISPLAY ?? WAYLAND_DISPLAY) !== undefined;
}

/** Serves the page of the locks, prints its link, and returns a function that ends it. */
export async function openPage(redisUrl: string): Promise<() => Promise<void>> {
  const open = hasScreen(process.env) ? ['--open'] : [];
  const page = spawn(process.execPath, [COMMAND, 'ui', '--actions', '--url', redisUrl, ...open], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(page, 'close');
  let link = '';
  for await (const chunk of page.stdout as AsyncIterable<Buffer>) {
    link += chunk.toString();
    if (link.endsWith('.\n')) break;
  }
  if (!link.includes('http://')) throw new Error(`holdfast ui has ended: ${link}`);
  console.log(link);
  return async () => {
    page.kill('SIGINT');
    await ended;
  };
}
