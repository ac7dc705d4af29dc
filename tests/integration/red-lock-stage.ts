import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import type { ClientOptions } from '../../src/options.js';
import type { RedLock, RedLockOptions } from '../../src/several/red-lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { answered, ready } from '../support/clients/lock-clients.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';

/*
 * Three independent servers. A server that hangs is one that is stopped (SIGSTOP): it accepts and never answers.
 */

export const servers: RedisServer[] = [];
export const clients: LockClient[] = [];
const proxies: FaultProxy[] = [];
let names = 0;

beforeAll(async () => {
  servers.push(...(await Promise.all([startServer(), startServer(), startServer()])));
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));
afterEach(async () => {
  for (const server of servers) server.resume();
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  // Not earlier: a call ends with a majority, and its pending requests to the other servers use these connections.
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  for (const server of servers) {
    await until(async () => (await server.keys()).length === 0, 'no key is left');
    await until(async () => (await server.channels()).length === 0, 'no channel is left');
  }
});

interface Red {
  readonly clients: readonly LockClient[];
  readonly lock: RedLock;
  readonly name: string;
}

export async function open(options: ClientOptions & { name?: string; red?: RedLockOptions } = {}): Promise<Red> {
  const { name = `red:${(names += 1)}`, red = {}, ...rest } = options;
  const opened = servers.map((server) => createClient({ url: server.url, ...rest }));
  clients.push(...opened);
  await ready(...opened);
  return { clients: opened, lock: opened[0]!.getRedLock(...opened.map((client) => client.getLock(name)), red), name };
}

/** A proxy in front of each server. */
export async function startProxies(): Promise<readonly FaultProxy[]> {
  proxies.push(...(await Promise.all(servers.map(({ address }) => FaultProxy.start(address)))));
  return proxies;
}

export const holders = async (name: string): Promise<number[]> =>
  Promise.all(servers.map(async (server) => Number(await server.command('HLEN', name))));

/**
 * Waits for the end of the requests that a call has left pending at other servers after its majority, and for the
 * release of their grants.
 */
export async function freeEverywhere({ clients, name }: Omit<Red, 'lock'>): Promise<void> {
  await Promise.all(clients.map(answered));
  await until(async () => (await holders(name)).every((held) => held === 0), 'it is free everywhere');
}

/** How long it takes, for a limit. */
export async function timed<T>(call: Promise<T>): Promise<{ value: T; ms: number }> {
  const began = performance.now();
  const value = await call;
  return { value, ms: elapsed(began) };
}
