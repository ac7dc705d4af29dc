import { expect, test } from '@jest/globals';
import { runFixture } from '../support/processes/fixture-process.js';
import { admin, freshName, testRedisUrl } from '../support/redis.js';

interface Heap {
  readonly waits: number;
  readonly waitsOnOneObject: number;
  readonly waitsWithLimits: number;
  readonly holds: number;
  readonly losses: number;
}

/** Ends a process that hangs. Alone it takes 15 s. */
const LIMIT_MS = 150_000;

test(
  'a waiting call takes at most 2 KiB of heap, and a renewed lock 2.5 KiB',
  async () => {
    const prefix = freshName();
    const heap = await runFixture<Heap>('heap-of-calls.mjs', [testRedisUrl(), prefix], ['--expose-gc'], LIMIT_MS);
    expect(heap.losses).toBe(0);
    expect(heap.waits).toBeLessThan(2_048);
    expect(heap.waitsOnOneObject).toBeLessThan(1_200);
    // A timer and functions for each call would take more than 1,000 bytes.
    expect(heap.waitsWithLimits - heap.waitsOnOneObject).toBeLessThan(400);
    expect(heap.holds).toBeLessThan(2_560);
    const keys = await admin().keys(`${prefix}*`);
    await admin().del(...keys);
  },
  LIMIT_MS,
);

interface HeapOfAborts {
  readonly locks: number;
  readonly semaphores: number;
  readonly isAborted: boolean;
}

test(
  'a call on an aborted signal leaves nothing on the heap, whatever the name of its lock',
  async () => {
    const args = [testRedisUrl(), freshName()];
    const heap = await runFixture<HeapOfAborts>('heap-of-aborts.mjs', args, ['--expose-gc'], LIMIT_MS);
    expect(heap.isAborted).toBe(true);
    // An error that stays takes about 1,000 bytes.
    expect(heap.locks).toBeLessThan(100);
    expect(heap.semaphores).toBeLessThan(200);
  },
  LIMIT_MS,
);
