import { createClient, type Lock, type LockClient } from 'holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../monotonic.js';
import { openPeer, type Peer } from '../peers.js';

/* Our side of what is measured beside Redisson, in a process of its own. */

export interface Shape {
  readonly kind: 'lock' | 'fair' | 'read-write' | 'semaphore';
  readonly flows: number;
  readonly sectionsEach: number;
  readonly holdMs: number;
  /** Of 100 sections of a read-write lock. */
  readonly readShare?: number;
  readonly permits?: number;
}

export interface Round {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly longestWaitMs: number;
}

const NAME = 'bench:beside';

let client: LockClient | undefined;
let clients: LockClient[] = [];

async function openBeside(urls: readonly string[]): Promise<void> {
  clients = urls.map((url) => createClient({ url }));
  client = clients[0]!;
  await Promise.all(clients.map((each) => each.ready()));
}

/** What the JVM runs before anything is measured, as often; of a read-write lock either half. */
async function warmUpBeside(kind: Shape['kind'], flows: number, sections: number): Promise<void> {
  for (const reads of kind === 'read-write' ? [true, false] : [false]) {
    const flow = async (_: unknown, number: number): Promise<void> => {
      const lock = lockOf(kind, reads, `bench:warm-up:${number}`);
      for (let i = 0; i < sections; i += 1) {
        await lock.lock();
        await lock.unlock();
      }
    };
    await Promise.all(Array.from({ length: flows }, flow));
  }
}

let raw: Peer | undefined;

/** The same as `flowsBeside` by two scripts of the simplest kind; ms. */
async function rawBeside(url: string, flows: number, sections: number): Promise<number> {
  raw ??= await openPeer('raw scripts', { url });
  const startedAt = now();
  await Promise.all(Array.from({ length: flows }, (_, number) => raw!.flow(`${NAME}:raw:${number}`, sections)));
  return now() - startedAt;
}

/** ms until a RedLock over all servers was entered, call by call; undefined: it was not. */
async function redBeside(calls: number, waitMs: number, leaseMs: number): Promise<(number | undefined)[]> {
  const red = client!.getRedLock(...clients.map((each) => each.getLock(NAME)));
  const took: (number | undefined)[] = [];
  for (let i = 0; i < calls; i += 1) {
    const calledAt = now();
    const inside = await red.tryLock(waitMs, leaseMs);
    took.push(inside ? now() - calledAt : undefined);
    if (inside) await red.unlock();
  }
  return took;
}

/** Sections on a name of its own for each flow; ms. */
async function flowsBeside(flows: number, sections: number): Promise<number> {
  const startedAt = now();
  const flow = async (_: unknown, number: number): Promise<void> => {
    const lock = client!.getLock(`${NAME}:${number}`);
    for (let i = 0; i < sections; i += 1) {
      await lock.lock();
      await lock.unlock();
    }
  };
  await Promise.all(Array.from({ length: flows }, flow));
  return now() - startedAt;
}

async function contendBeside(shape: Shape): Promise<Round> {
  const { flows, sectionsEach, holdMs, readShare = 0, permits = 1 } = shape;
  let inside = 0;
  let longestWaitMs = 0;
  const flow = async (_: unknown, number: number): Promise<void> => {
    for (let i = 0; i < sectionsEach; i += 1) {
      const reads = (number * 31 + i) % 100 < readShare;
      const calledAt = now();
      await within(shape, reads, async () => {
        longestWaitMs = Math.max(longestWaitMs, now() - calledAt);
        inside += 1;
        if (readShare === 0 && inside > permits) throw new Error('too many are inside');
        if (holdMs > 0) await sleep(holdMs);
        inside -= 1;
      });
    }
  };
  const startedAt = now();
  await Promise.all(Array.from({ length: flows }, flow));
  return { startedAt, endedAt: now(), longestWaitMs };
}

function within({ kind }: Shape, reads: boolean, work: () => Promise<void>): Promise<void> {
  if (kind === 'semaphore') return client!.getSemaphore(NAME).withPermits(work);
  return lockOf(kind, reads).withLock(work);
}

function lockOf(kind: Shape['kind'], reads: boolean, name = NAME): Lock {
  switch (kind) {
    case 'read-write': {
      const both = client!.getReadWriteLock(name);
      return reads ? both.readLock() : both.writeLock();
    }
    case 'fair':
      return client!.getFairLock(name);
    default:
      return client!.getLock(name);
  }
}

let release: (() => Promise<void>) | undefined;
let entering: { at: number[]; over: Promise<unknown> } | undefined;

async function takeBeside(kind: Shape['kind']): Promise<void> {
  const hold = await lockOf(kind, false).acquire();
  release = () => hold.release();
}

async function giveBackBeside(): Promise<number> {
  const calledAt = now();
  await release!();
  return calledAt;
}

async function waitBeside(kind: Shape['kind'], waiters: number): Promise<void> {
  const at: number[] = [];
  const waiter = async (): Promise<void> => {
    const hold = await lockOf(kind, false).acquire();
    at.push(now());
    await hold.release();
  };
  entering = { at, over: Promise.all(Array.from({ length: waiters }, waiter)) };
}

async function enteredBeside(): Promise<number> {
  await entering!.over;
  return entering!.at[0]!;
}

export const tasks = {
  openBeside,
  warmUpBeside,
  rawBeside,
  redBeside,
  flowsBeside,
  contendBeside,
  takeBeside,
  giveBackBeside,
  waitBeside,
  enteredBeside,
};
