import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type * as Holdfast from 'holdfast';
import { liveBytes } from '../live-bytes.js';
import { now } from '../monotonic.js';
import { connect } from '../peers.js';

/* What a process with two builds of Holdfast does: always for one of them. */

export const SIDES = ['this', 'other'] as const;
export type Side = (typeof SIDES)[number];

export interface Shape {
  readonly kind: 'lock' | 'fair' | 'read-write' | 'permits' | 'leased permits' | 'red';
  readonly flows: number;
  readonly holdMs: number;
  /** Each flow has a lock of its own. */
  readonly isDistinct?: boolean;
}

export interface Opening {
  /** Of the other build: its package, with `dist`. */
  readonly folder: string;
  /** Of one server each. Only a RedLock uses more than the first. */
  readonly urls: readonly string[];
  readonly options: Holdfast.ClientOptions;
}

const PERMITS = 10;
const LEASE_MS = 30_000;
const clients = new Map<Side, readonly Holdfast.LockClient[]>();

async function openBuilds({ folder, urls, options }: Opening): Promise<void> {
  const other = pathToFileURL(join(folder, 'dist/index.mjs')).href;
  for (const side of SIDES) {
    const { createClient } = (await import(side === 'this' ? 'holdfast' : other)) as typeof Holdfast;
    const opened = urls.map((url) => createClient({ url, callSites: false, ...options }));
    await Promise.all(opened.map((client) => client.ready()));
    clients.set(side, opened);
  }
}

const clientOf = (side: Side): Holdfast.LockClient => clients.get(side)![0]!;
const nameOf = (side: Side, what: string): string => `bench:builds:${side}:${what}`;

type Enter = (work: () => unknown, section: number) => Promise<unknown>;

async function entering(side: Side, { kind }: Shape, what: string): Promise<Enter> {
  const client = clientOf(side);
  const name = nameOf(side, what);
  switch (kind) {
    case 'lock':
    case 'fair': {
      const lock = kind === 'lock' ? client.getLock(name) : client.getFairLock(name);
      return (work) => lock.withLock(work);
    }
    case 'read-write': {
      const lock = client.getReadWriteLock(name);
      const [read, write] = [lock.readLock(), lock.writeLock()];
      return (work, section) => (section % 20 === 0 ? write : read).withLock(work);
    }
    case 'permits': {
      const semaphore = client.getSemaphore(name);
      await semaphore.trySetPermits(PERMITS);
      return (work) => semaphore.withPermits(work);
    }
    case 'leased permits': {
      const semaphore = client.getPermitExpirableSemaphore(name);
      await semaphore.trySetPermits(PERMITS);
      return (work) => semaphore.withPermit({ leaseTime: LEASE_MS }, work);
    }
    case 'red': {
      const lock = client.getRedLock(...clients.get(side)!.map((each) => each.getLock(name)));
      return (work) => lock.withLock(work);
    }
  }
}

/** Sections of one build. */
async function sectionsOf(side: Side, shape: Shape, each: number): Promise<{ startedAt: number; endedAt: number }> {
  const { flows, holdMs, isDistinct = false, kind } = shape;
  const enters = await Promise.all(
    Array.from({ length: flows }, (_, flow) =>
      entering(side, shape, isDistinct ? `${kind}:${process.pid}:${flow}` : kind),
    ),
  );
  const hold = (): unknown => (holdMs > 0 ? sleep(holdMs) : undefined);
  const startedAt = now();
  await Promise.all(
    enters.map(async (enter, flow) => {
      for (let i = 0; i < each; i += 1) await enter(hold, flow * 7 + i);
    }),
  );
  return { startedAt, endedAt: now() };
}

let release: (() => Promise<void>) | undefined;
let waiting: { readonly entered: number[]; readonly over: Promise<unknown> } | undefined;

const lockOf = (side: Side, isFair: boolean): Holdfast.Lock =>
  isFair ? clientOf(side).getFairLock(nameOf(side, 'fair')) : clientOf(side).getLock(nameOf(side, 'handed-off'));

async function takeOf(side: Side, isFair: boolean): Promise<void> {
  const hold = await lockOf(side, isFair).acquire();
  release = () => hold.release();
}

async function releaseOf(): Promise<number> {
  const calledAt = now();
  await release!();
  return calledAt;
}

function waitOf(side: Side, isFair: boolean, waiters: number): void {
  const entered: number[] = [];
  const waiter = async (): Promise<void> => {
    const hold = await lockOf(side, isFair).acquire();
    entered.push(now());
    await hold.release();
  };
  waiting = { entered, over: Promise.all(Array.from({ length: waiters }, waiter)) };
}

async function firstOf(): Promise<number> {
  await waiting!.over;
  return waiting!.entered[0]!;
}

/** Seconds of CPU that this process uses in `ms` while one build holds and renews locks. */
async function cpuOfHeld(side: Side, locks: number, ms: number): Promise<number> {
  const held: Holdfast.Hold[] = [];
  const some = async (_: unknown, first: number): Promise<void> => {
    for (let i = first; i < locks; i += 200)
      held.push(
        await clientOf(side)
          .getLock(nameOf(side, `held:${i}`))
          .acquire(),
      );
  };
  await Promise.all(Array.from({ length: 200 }, some));
  // The first renewals of a process run code that V8 has not compiled yet.
  await sleep(ms);
  const before = process.cpuUsage();
  await sleep(ms);
  const { user, system } = process.cpuUsage(before);
  await Promise.all(held.map((hold) => hold.release()));
  return (user + system) / 1e6;
}

/** Bytes that each waiter of one build takes. */
async function bytesOfWaiters(side: Side, url: string, waiters: number): Promise<number> {
  const name = nameOf(side, `waited-for:${randomUUID()}`);
  const redis = await connect(url);
  await redis.hset(name, 'another owner', 1);
  await redis.pexpire(name, 3_600_000);
  const controller = new AbortController();
  const wait = (): Promise<unknown> =>
    clientOf(side)
      .getLock(name)
      .acquire({ signal: controller.signal })
      .catch(() => undefined);
  const calls = [wait()];
  await sleep(200);
  const before = liveBytes();
  for (let i = 0; i < waiters; i += 1) calls.push(wait());
  await sleep(500);
  const bytes = (liveBytes() - before) / waiters;
  controller.abort();
  await Promise.all(calls);
  await redis.del(name);
  redis.disconnect();
  return bytes;
}

export const tasks = {
  openBuilds,
  sectionsOf,
  takeOf,
  releaseOf,
  waitOf,
  firstOf,
  cpuOfHeld,
  bytesOfWaiters,
};
