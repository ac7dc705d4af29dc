import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { behindNetworkName } from './network-name.js';
import { withWorkers } from './processes.js';
import type { Workload } from './workloads/workload.js';

/* A network between the client and Redis: a proxy that passes bytes on after a delay. */

const DELAY_MS = 1;

/** A proxy in this process. */
export async function delay(url: string): Promise<{ readonly url: string; close(): void }> {
  const target = new URL(url);
  const pass = (from: Socket, to: Socket): void => {
    from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), DELAY_MS));
    from.on('error', () => to.destroy());
    // Behind the bytes that are still on their way.
    from.on('close', () => setTimeout(() => to.end(), DELAY_MS));
  };
  const server = createServer((client) => {
    const redis = connect(Number(target.port), target.hostname);
    pass(client.setNoDelay(), redis.setNoDelay());
    pass(redis, client);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const way = new URL(url);
  way.hostname = '127.0.0.1';
  way.port = String((server.address() as AddressInfo).port);
  return { url: way.href, close: () => void server.close() };
}

/** Until the process ends. */
function openDelays(urls: readonly string[]): Promise<string[]> {
  return Promise.all(urls.map(async (url) => (await delay(url)).url));
}

export const tasks = { openDelays };

/** Calls `work` with the URLs of proxies, which run in a process of their own until it ends. */
export const withDelays = <T>(urls: readonly string[], work: (ways: readonly string[]) => Promise<T>): Promise<T> =>
  withWorkers(1, async ([proxy]) => work(await proxy!.run('openDelays', urls)));

/** The same workload behind a network: each message takes 1 ms, in each direction. */
export const behindNetwork = ({ name, run }: Workload): Workload => ({
  name: behindNetworkName(name),
  async run({ server, ...setting }) {
    const rows = await run({ ...setting, server: await server.delayed() });
    return rows.map((row) => ({ ...row, workload: behindNetworkName(row.workload) }));
  },
});
