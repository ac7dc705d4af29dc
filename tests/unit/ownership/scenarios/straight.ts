import {
  NOT_OWNER,
  Section,
  exclusive,
  holdElsewhere,
  isInside,
  nested,
  outcome,
  pause,
  takeTurn,
  type OwnershipScenario,
} from './scenario.js';

/** One flow, locking and unlocking. */
export const straight: OwnershipScenario[] = [
  {
    name: 'a script locks twice, counts and unlocks twice',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const taken = [await lock.tryLock(), await lock.tryLock()];
      const count = await lock.getHoldCount();
      const unlocks = [await outcome(lock.unlock()), await outcome(lock.unlock()), await outcome(lock.unlock())];
      return { taken, count, unlocks, locked: await lock.isLocked() };
    },
    expected: { taken: [true, true], count: 2, unlocks: ['ok', 'ok', NOT_OWNER], locked: false },
  },
  {
    name: 'a helper that knows nothing of its caller re-enters through a handle of its own',
    async run({ newLock }, name) {
      const lock = newLock(name);
      await lock.lock();
      const reentered = await nested(newLock(name));
      const count = await lock.getHoldCount();
      await lock.unlock();
      return { reentered, count, locked: await lock.isLocked() };
    },
    expected: { reentered: true, count: 1, locked: false },
  },
  {
    name: 'then, catch and finally are inside, and so is the code that awaits their result',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const inThen = await lock.lock().then(() => nested(newLock(name)));
      const afterThen = isInside(lock);
      await lock.unlock();
      const inFinally = await lock
        .lock()
        .then(() => nested(newLock(name)))
        .finally(() => lock.unlock());
      const afterFinally = isInside(lock);
      const taken = await lock.tryLock().catch(() => false);
      const afterCatch = await nested(newLock(name));
      await lock.unlock();
      let inHandler = false;
      await lock
        .lock()
        .then(() => Promise.reject(new Error('work failed')))
        .catch(async () => {
          inHandler = await nested(newLock(name));
        });
      const afterHandler = await outcome(lock.unlock());
      return { inThen, afterThen, inFinally, afterFinally, taken, afterCatch, inHandler, afterHandler };
    },
    expected: {
      inThen: true,
      afterThen: true,
      inFinally: true,
      afterFinally: false,
      taken: true,
      afterCatch: true,
      inHandler: true,
      afterHandler: 'ok',
    },
  },
  {
    name: 'work that fails in a then leaves its awaiter inside, to unlock',
    async run({ newLock }, name) {
      const lock = newLock(name);
      let unlocked: unknown;
      try {
        await lock.lock().then(async () => {
          await pause();
          throw new Error('work failed');
        });
      } catch {
        unlocked = await outcome(lock.unlock());
      }
      return { unlocked, locked: await lock.isLocked() };
    },
    expected: { unlocked: 'ok', locked: false },
  },
  {
    name: 'a promise awaited late is entered at the await, awaited twice is entered once',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const locking = lock.lock();
      await pause(5);
      const before = isInside(lock);
      await locking;
      await locking;
      const count = await lock.getHoldCount();
      const unlocks = [await outcome(lock.unlock()), await outcome(lock.unlock())];
      await locking;
      return { before, count, unlocks, afterTheEnd: isInside(lock) };
    },
    expected: { before: false, count: 1, unlocks: ['ok', NOT_OWNER], afterTheEnd: false },
  },
  {
    name: 'a function that is not async hands the promise on, and with it the hold',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const take = (): Promise<boolean> => lock.tryLock();
      const taken = await take();
      return { taken, unlocked: await outcome(lock.unlock()) };
    },
    expected: { taken: true, unlocked: 'ok' },
  },
  {
    name: 'a tryLock that finds the lock busy enters nothing',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const hold = await holdElsewhere(lock);
      const taken = [await lock.tryLock(), await lock.tryLock(5)];
      const unlocked = await outcome(lock.unlock());
      const locked = await lock.isLocked();
      await hold.release();
      return { taken, unlocked, locked };
    },
    expected: { taken: [false, false], unlocked: NOT_OWNER, locked: true },
  },
  {
    name: 'withLock, hold.run and acquire put their flows inside',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const inWithLock = await lock.withLock(() => nested(newLock(name)));
      const afterWithLock = isInside(lock);
      const hold = await lock.acquire();
      const afterAcquire = await nested(newLock(name));
      const inRun = await hold.run(() => nested(newLock(name)));
      await hold.release();
      const handedOut = await holdElsewhere(lock);
      const outside = await nested(newLock(name));
      const inForeignRun = await handedOut.run(() => nested(newLock(name)));
      await handedOut.release();
      return { inWithLock, afterWithLock, afterAcquire, inRun, outside, inForeignRun, locked: await lock.isLocked() };
    },
    expected: {
      inWithLock: true,
      afterWithLock: false,
      afterAcquire: true,
      inRun: true,
      outside: false,
      inForeignRun: true,
      locked: false,
    },
  },
  {
    name: 'two locks acquired in turn are released by name',
    async run({ newLock }, name) {
      const [a, b] = [newLock(name + ' a'), newLock(name + ' b')];
      await a.lock();
      await b.lock();
      await a.lock();
      const counts = [await a.getHoldCount(), await b.getHoldCount()];
      const unlocks = [await outcome(b.unlock()), await outcome(b.unlock()), await outcome(a.unlock())];
      const left = [isInside(a), isInside(b)];
      await a.unlock();
      return { counts, unlocks, left, locked: [await a.isLocked(), await b.isLocked()] };
    },
    expected: { counts: [2, 1], unlocks: ['ok', NOT_OWNER, 'ok'], left: [true, false], locked: [false, false] },
  },
  {
    name: 'callbacks of timers and promises set up inside are inside',
    async run({ newLock }, name) {
      const lock = newLock(name);
      await lock.lock();
      const inTimer = await new Promise<boolean>((resolve, reject) => {
        setTimeout(() => {
          nested(newLock(name)).then(resolve, reject);
        }, 1);
      });
      const inMicrotask = await new Promise<boolean>((resolve, reject) => {
        queueMicrotask(() => {
          nested(newLock(name)).then(resolve, reject);
        });
      });
      const inThen = await Promise.resolve().then(() => nested(newLock(name)));
      await lock.unlock();
      return { inTimer, inMicrotask, inThen, locked: await lock.isLocked() };
    },
    expected: { inTimer: true, inMicrotask: true, inThen: true, locked: false },
  },
  {
    name: 'an async generator that locks and unlocks within one step, and one whose consumer is inside',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const section = new Section();
      async function* steps(): AsyncGenerator<boolean> {
        for (let step = 0; step < 3; step += 1) {
          await takeTurn(newLock(name), section);
          yield isInside(lock);
        }
      }
      const seen: boolean[] = [];
      for await (const inside of steps()) seen.push(inside);
      await lock.lock();
      for await (const inside of steps()) seen.push(inside);
      await lock.unlock();
      return { seen, ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { seen: [false, false, false, true, true, true], ...exclusive(6), locked: false },
  },
];
