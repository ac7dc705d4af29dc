import { once } from 'node:events';
import { createServer } from 'node:net';

const LOWEST = 10_000;
const COUNT = 12_000;

/**
 * Returns a free loopback port below the range from which the kernel takes the ports of outgoing connections. In that
 * range, a client that keeps connecting to a stopped server would sooner or later connect to itself, and the server
 * could not restart at its own address.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * COUNT);
    const probe = createServer();
    const listening = new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!(await listening)) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
