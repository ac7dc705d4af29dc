import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import type { LockEvents } from '../../src/events.js';
import type { ContextOptions } from '../../src/locks/arguments.js';
import type { Lock } from '../../src/locks/lock.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, TestClock, type ClientSettings } from '../support/clients/lock-clients.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';
import type { LockSpec } from '../support/processes/worker-orders.js';

export type MakeLock = (client: LockClient, name: string, options?: ContextOptions) => Lock;

/** The properties of a kind of lock that the contract needs. */
export interface LockCapabilities {
  /** The same lock, for a worker process. */
  spec(name: string): LockSpec;
  /** Writes a hold to Redis that no client of this process knows, such as one of Redisson. */
  holdFromOutside(name: string, leaseTime: number): Promise<void>;
  /** The SHA of the script that releases one of several holds. */
  readonly partialRelease: string;
  /** For a lock over one member: the error of the member inside an error with one place per member. */
  memberError?(error: unknown): unknown;
  /** Whether the end of the lease is that of the key. Default true. */
  readonly endsByKey?: boolean;
}

export interface LockKind extends LockCapabilities {
  readonly make: MakeLock;
}

/** Delay that two busy cores may cause, in this process or in Redis. It applies to upper limits only. */
export const SLACK_MS = 1_000;
/** Time within which every waiter that can be granted is granted. */
export const WAKE_MS = 200;
/** A third of the command deadline. */
export const ATTEMPT_MS = 1_000;

const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);

/** Registers the checks after each test of the contract: no lock is held, and a closed client leaves nothing. */
export function leaveNothing(): void {
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => void process.off('unhandledRejection', note));
  afterEach(async () => {
    await closeClients();
    expect(unhandled.splice(0)).toEqual([]);
  });
}

export interface Bench {
  readonly client: LockClient;
  readonly clock: TestClock;
  readonly lock: Lock;
  readonly name: string;
  /** Of this client, in order. */
  readonly events: { readonly [K in keyof LockEvents]: LockEvents[K][] };
}

/** A client with one new lock, or with the same lock as another client. */
export async function open(kind: LockKind, settings: ClientSettings & { name?: string } = {}): Promise<Bench> {
  const { name = freshName(), ...options } = settings;
  const clock = new TestClock();
  const client = await openClient({ clock, ...options });
  return { client, clock, lock: kind.make(client, name), name, events: heard(client) };
}

function heard(client: LockClient): Bench['events'] {
  const events: Bench['events'] = {
    acquired: [],
    notAcquired: [],
    released: [],
    waiting: [],
    renewed: [],
    renewFailed: [],
    leaseLost: [],
    permitsAcquired: [],
    permitsReleased: [],
    latchPassed: [],
    latchCountedDown: [],
    releaseFailed: [],
    forceUnlocked: [],
    connectionError: [],
    clockUnavailable: [],
  };
  for (const type of Object.keys(events) as (keyof LockEvents)[]) {
    client.events.on(type, (event) => (events[type] as unknown[]).push(event));
  }
  return events;
}

/** Starts a call that has to wait, and returns when it does. */
export async function startWaiting<T>(bench: Bench, call: () => Promise<T>): Promise<{ result: Promise<T> }> {
  const before = bench.events.waiting.length;
  const result = inFlow(call);
  result.catch(() => undefined); // looked at by the test, later
  await until(() => bench.events.waiting.length > before, 'the call waits');
  return { result };
}

/** Where the waiters of a lock listen, as soon as one does. */
export async function channelOf(name: string): Promise<string> {
  let channel: string | undefined;
  await until(async () => {
    [channel] = (await admin().pubsub('CHANNELS', `*${name}*`)) as string[];
    return channel !== undefined;
  }, 'a waiter has subscribed');
  return channel!;
}

export interface Timed<T> {
  readonly value: T;
  readonly ms: number;
  /** Without the time in which this process was held up. */
  readonly ownMs: number;
}

export async function timed<T>(call: () => Promise<T>): Promise<Timed<T>> {
  const began = performance.now();
  const value = await call();
  return { value, ms: performance.now() - began, ownMs: elapsed(began) };
}

/** The error a promise rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([promise]);
  if (outcome.status === 'fulfilled') throw new Error('it was expected to reject');
  return outcome.reason;
}

/** The error of Redis for the one lock, without the errors around it. */
export const memberError = (kind: LockKind, error: unknown): unknown => kind.memberError?.(error) ?? error;
