import { systemClock, type Clock, type Timer } from '../../../src/clock.js';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { runOutside } from '../../../src/ownership/flow.js';
import type { ClientOptions } from '../../../src/options.js';
import type { Hold } from '../../../src/holding/hold.js';
import type { Lock } from '../../../src/locks/lock.js';
import { FaultProxy } from '../proxy/proxy.js';
import { admin, testRedisUrl } from '../redis.js';
import { neverAFlake } from '../serious.js';
import { PARKED_MS, STARTED_MS } from '../time/pauses.js';
import { until } from '../time/until.js';
import { reach } from '../servers/topology.mjs';

/** The system clock, with a wall clock that a test can set and a list of the pending timers. */
export class TestClock implements Clock {
  readonly #system = systemClock(runOutside);
  readonly #set = new Set<Timer>();
  #wallAheadMs = 0;

  monotonic(): number {
    return this.#system.monotonic();
  }

  wall(): number {
    return this.#system.wall() + this.#wallAheadMs;
  }

  setTimer(ms: number, fn: () => void, keepsAlive?: boolean): Timer {
    const ended = (): void => {
      this.#set.delete(timer);
      fn();
    };
    const timer = this.#system.setTimer(ms, ended, keepsAlive);
    this.#set.add(timer);
    return {
      cancel: () => {
        this.#set.delete(timer);
        timer.cancel();
      },
    };
  }

  /** Timers that are set. */
  get timers(): number {
    return this.#set.size;
  }

  jumpWall(ms: number): void {
    this.#wallAheadMs += ms;
  }
}

/** A clock that lists its pending timers for the leak check. */
type ClientClock = Clock & { readonly timers: number };

export interface ClientSettings extends ClientOptions {
  url?: string;
  clock?: ClientClock;
}

let user: { username: string; password: string } | undefined;

/** Clients that are opened without a URL use this user from now on. */
export function useUser(given: typeof user): void {
  user = given;
}

/** The suite's server, as the user of the clients reaches it. */
export function clientUrl(): string {
  const url = new URL(testRedisUrl());
  return Object.assign(url, user).href;
}

const clients: { readonly client: LockClient; readonly clock: ClientClock }[] = [];
const proxies: FaultProxy[] = [];

/** Clients with a short command deadline may need several on a busy machine. */
export async function ready(...opened: readonly LockClient[]): Promise<void> {
  const isReady = async (client: LockClient): Promise<boolean> => (await outcome(client.ready())) === 'ok';
  await Promise.all(opened.map((client) => until(() => isReady(client), 'the client is ready')));
}

/** A client that knows Redis already, closed by `closeClients`. */
export async function openClient({
  url = clientUrl(),
  clock = new TestClock(),
  ...options
}: ClientSettings = {}): Promise<LockClient> {
  const client = createClient({ ...reach(url), ...options }, { clock });
  clients.push({ client, clock });
  await ready(client);
  return client;
}

/** A proxy in front of the suite's server; `url` leads through it to this worker's database. */
export async function openProxy(): Promise<{ proxy: FaultProxy; url: string }> {
  const { hostname, port, pathname } = new URL(testRedisUrl());
  const proxy = await FaultProxy.start({ host: hostname, port: Number(port) });
  proxies.push(proxy);
  return { proxy, url: proxy.url + pathname };
}

/** Releases open holds, so that only unintended leftovers of a test remain. A closed client has no timer. */
export async function closeClients(): Promise<void> {
  for (const proxy of proxies) proxy.lift();
  const opened = clients.splice(0);
  await Promise.all(opened.map(({ client }) => client.close({ releaseHolds: true })));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  const timers = opened.map(({ clock }) => clock.timers);
  if (timers.some((count) => count > 0)) throw neverAFlake(`timers left by closed clients: ${timers.join(', ')}`);
}

/** Runs a separate flow: no other code is inside its holds, unless the flow passes on the `Hold`. */
export function inFlow<T>(fn: () => Promise<T>): Promise<T> {
  return runOutside(fn);
}

/** Held by a flow that the caller is not in. */
export function holdElsewhere(lock: Lock, leaseTime?: number): Promise<Hold> {
  return inFlow(async () => lock.acquire({ leaseTime }));
}

/** More round trips than a call makes before it waits. */
const ROUND_TRIPS = 8;

/**
 * Waits until replies that have arrived are read: after a hold-up of the process, timers run before sockets. The pauses for
 * a call that was started also wait for round trips to the suite's server: on a busy machine, server and process have had
 * their turns then.
 */
export async function pause(ms = 0): Promise<void> {
  await new Promise((resume) => setTimeout(() => setImmediate(resume), ms));
  if (ms !== STARTED_MS && ms !== PARKED_MS) return;
  for (let trip = 0; trip < ROUND_TRIPS; trip += 1) await admin().ping();
}

/** Waits for the replies to everything that the client has sent: its commands keep their order. */
export async function answered(client: LockClient): Promise<void> {
  await pause();
  await inFlow(() => client.getLock('answered').isLocked());
}

/** `ok`, or the code of the error. */
export async function outcome(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
    return 'ok';
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
}

/** Blocks the event loop. */
export function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
