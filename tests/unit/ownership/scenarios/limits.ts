import {
  NOT_OWNER,
  Signal,
  isInside,
  nested,
  outcome,
  pause,
  type OwnershipHold,
  type OwnershipScenario,
} from './scenario.js';

/** Deterministic, and safe: the caller stays a stranger. */
export const limits: OwnershipScenario[] = [
  {
    name: 'an async helper that locks and returns keeps the hold for itself',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const begin = async (): Promise<void> => {
        await lock.lock();
      };
      const take = async (): Promise<boolean> => lock.tryLock();
      await begin();
      const reentered = await nested(newLock(name));
      const unlocked = await outcome(lock.unlock());
      const forced = await lock.forceUnlock();
      const taken = await take();
      const unlockedTake = await outcome(lock.unlock());
      await lock.forceUnlock();
      return { reentered, unlocked, forced, taken, unlockedTake };
    },
    expected: { reentered: false, unlocked: NOT_OWNER, forced: true, taken: true, unlockedTake: NOT_OWNER },
  },
  {
    name: 'an async helper that returns the Hold lets its caller release the lock',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const begin = async (): Promise<{ hold: OwnershipHold }> => ({ hold: await lock.acquire() });
      const { hold } = await begin();
      const bare = isInside(lock);
      const inRun = await hold.run(() => nested(newLock(name)));
      const released = await outcome(hold.release());
      return { bare, inRun, released, locked: await lock.isLocked() };
    },
    expected: { bare: false, inRun: true, released: 'ok', locked: false },
  },
  {
    name: 'Promise.all, allSettled and race of acquisitions keep the holds for themselves',
    async run({ newLock }, name) {
      const [a, b, c, d] = [newLock(name + ' a'), newLock(name + ' b'), newLock(name + ' c'), newLock(name + ' d')];
      await Promise.all([a.lock(), b.lock()]);
      const all = [await outcome(a.unlock()), await outcome(b.unlock())];
      const raced = await Promise.race([c.tryLock(), pause(1_000).then(() => 'too late')]);
      const race = await outcome(c.unlock());
      await Promise.allSettled([d.lock()]);
      const settled = await outcome(d.unlock());
      for (const lock of [a, b, c, d]) await lock.forceUnlock();
      return { all, raced, race, settled };
    },
    expected: { all: [NOT_OWNER, NOT_OWNER], raced: true, race: NOT_OWNER, settled: NOT_OWNER },
  },
  {
    name: 'hooks that a framework awaits one after the other do not share a hold',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const preHandler = async (): Promise<void> => {
        await lock.lock();
      };
      const handler = async (): Promise<boolean> => nested(newLock(name));
      const onResponse = async (): Promise<unknown> => outcome(lock.unlock());
      await preHandler();
      const reentered = await handler();
      const unlocked = await onResponse();
      await lock.forceUnlock();
      return { reentered, unlocked };
    },
    expected: { reentered: false, unlocked: NOT_OWNER },
  },
  {
    name: 'an async generator that locks before a yield cannot unlock after it',
    async run({ newLock }, name) {
      const lock = newLock(name);
      let unlocked: unknown;
      async function* rows(): AsyncGenerator<number> {
        await lock.lock();
        try {
          yield 1;
        } finally {
          unlocked = await outcome(lock.unlock());
        }
      }
      let consumerInside = true;
      for await (const _row of rows()) consumerInside = isInside(lock);
      await lock.forceUnlock();
      return { unlocked, consumerInside };
    },
    expected: { unlocked: NOT_OWNER, consumerInside: false },
  },
  {
    name: 'unlock releases holds of lock and tryLock, never a hold of withLock or acquire',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const inWithLock = await lock.withLock(async () => {
        const first = await outcome(lock.unlock());
        await lock.lock();
        const count = await lock.getHoldCount();
        return [first, count, await outcome(lock.unlock()), await lock.getHoldCount()];
      });
      const hold = await lock.acquire();
      const afterAcquire = [await outcome(lock.unlock()), await lock.isHeldByCurrentContext()];
      await hold.release();
      return { inWithLock, afterAcquire, locked: await lock.isLocked() };
    },
    expected: { inWithLock: [NOT_OWNER, 2, 'ok', 1], afterAcquire: [NOT_OWNER, true], locked: false },
  },
  {
    name: 'lockContext.run is outside of every hold',
    async run({ newLock, lockContext }, name) {
      const lock = newLock(name);
      await lock.lock();
      const taken = await lockContext.run(() => nested(newLock(name)));
      const unlocked = await lockContext.run(() => outcome(lock.unlock()));
      const seen = await lockContext.run(async () => [await lock.getHoldCount(), await lock.isHeldByCurrentContext()]);
      const own = [await lock.getHoldCount(), await outcome(lock.unlock())];
      const inContext = await lockContext.run(async () => {
        await lock.lock();
        const reentered = await nested(newLock(name));
        await lock.unlock();
        return reentered;
      });
      return { taken, unlocked, seen, own, inContext, locked: await lock.isLocked() };
    },
    expected: {
      taken: false,
      unlocked: NOT_OWNER,
      seen: [0, false],
      own: [1, 'ok'],
      inContext: true,
      locked: false,
    },
  },
  {
    name: 'a worker made inside a hold is inside, one made through lockContext.run is not',
    async run({ newLock, lockContext }, name) {
      const lock = newLock(name);
      const worker = async (job: Signal): Promise<boolean> => {
        await job.given;
        return nested(newLock(name));
      };
      const jobs = [new Signal(), new Signal()] as const;
      await lock.lock();
      const inside = worker(jobs[0]);
      const outside = lockContext.run(() => worker(jobs[1]));
      for (const job of jobs) job.give();
      const reentered = [await inside, await outside];
      await lock.unlock();
      return { reentered, locked: await lock.isLocked() };
    },
    expected: { reentered: [true, false], locked: false },
  },
  {
    name: 'a pool that awaits its tasks in one flow lends them its hold; lockContext.run keeps them apart',
    async run({ newLock, lockContext }, name) {
      const pool = async (tasks: (() => Promise<boolean>)[]): Promise<boolean[]> => {
        const results: boolean[] = [];
        for (const task of tasks) results.push(await task());
        return results;
      };
      const task = (): Promise<boolean> => newLock(name).tryLock();
      const apart = (): Promise<boolean> => lockContext.run(task);
      const lent = await pool([task, task, task]);
      await newLock(name).forceUnlock();
      const kept = await pool([apart, apart, apart]);
      await newLock(name).forceUnlock();
      return { lent, kept };
    },
    expected: { lent: [true, true, true], kept: [true, false, false] },
  },
];
