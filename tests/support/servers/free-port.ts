import { once } from 'node:events';
import { createServer } from 'node:net';

const LOWEST = 10_000;
const COUNT = 12_000;

/**
 * A loopback port nobody listens on, below the range the kernel takes the ports of outgoing connections from. In that
 * range a client that keeps trying to reach a stopped server is connected to itself sooner or later, and the server
 * cannot come back at its own address.
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
