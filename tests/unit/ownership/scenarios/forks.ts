import {
  NOT_OWNER,
  Section,
  Signal,
  exclusive,
  isInside,
  nested,
  outcome,
  pause,
  takeTurn,
  type OwnershipLock,
  type OwnershipScenario,
} from './scenario.js';

/** Several flows at once, started inside a hold or outside. */
export const forks: OwnershipScenario[] = [
  {
    name: 'calls started together take turns',
    async run({ newLock }, name) {
      const section = new Section();
      const turn = (): Promise<void> => takeTurn(newLock(name), section);
      await Promise.all([turn(), turn(), turn()]);
      return section.facts();
    },
    expected: exclusive(3),
  },
  {
    name: 'calls started together inside an outer hold take turns, and all are granted',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const turn = (): Promise<void> => takeTurn(newLock(name), section);
      await lock.lock();
      await Promise.all([turn(), turn(), turn()]);
      const count = await lock.getHoldCount();
      await lock.unlock();
      return { ...section.facts(), count, locked: await lock.isLocked() };
    },
    expected: { ...exclusive(3), count: 1, locked: false },
  },
  {
    name: 'ten branches at odd moments take turns, without and with an outer hold, bare and by withLock',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const branch = async (at: number): Promise<void> => {
        await pause((at * 7) % 5);
        const mine = newLock(name);
        if (at % 2 === 0) await takeTurn(mine, section, at % 3);
        else await mine.withLock(() => section.work(at % 3));
      };
      const branches = (): Promise<unknown> => Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(branch));
      await branches();
      await lock.lock();
      await branches();
      await lock.unlock();
      await lock.withLock(branches);
      return { ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { ...exclusive(30), locked: false },
  },
  {
    name: 'branches of branches take turns',
    async run({ newLock }, name) {
      const section = new Section();
      const branch = async (depth: number): Promise<void> => {
        const lock = newLock(name);
        await lock.lock();
        if (depth === 0) await section.work();
        else await Promise.all([branch(depth - 1), branch(depth - 1)]);
        await lock.unlock();
      };
      await branch(3);
      return { ...section.facts(), locked: await newLock(name).isLocked() };
    },
    expected: { ...exclusive(8), locked: false },
  },
  {
    name: 'bare calls of one flow, three milliseconds apart, take turns',
    async run({ newLock, lockContext }, name) {
      const section = new Section();
      const late = async (ms: number): Promise<void> => {
        await pause(ms);
        await takeTurn(newLock(name), section, 4);
      };
      await lockContext.run(() => Promise.all([late(0), late(3), late(6)]));
      return section.facts();
    },
    expected: exclusive(3),
  },
  {
    name: 'a loop that starts jobs lets one in at a time',
    async run({ newLock }, name) {
      const section = new Section();
      const jobs: Promise<void>[] = [];
      for (let job = 0; job < 4; job += 1) {
        jobs.push(takeTurn(newLock(name), section, 2));
        await pause(1);
      }
      await Promise.all(jobs);
      return section.facts();
    },
    expected: exclusive(4),
  },
  {
    name: 'a holder that was fired and forgotten keeps its spawner out',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const inside = new Signal();
      const leave = new Signal();
      const holder = async (): Promise<void> => {
        await newLock(name).lock();
        inside.give();
        await section.work();
        await leave.given;
        await newLock(name).unlock();
      };
      const holding = holder();
      await inside.given;
      const taken = await lock.tryLock();
      const unlocked = await outcome(lock.unlock());
      leave.give();
      await holding;
      return { taken, unlocked, ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { taken: false, unlocked: NOT_OWNER, ...exclusive(1), locked: false },
  },
  {
    name: 'a child that outlives the hold it was started in keeps its parent out',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const inside = new Signal();
      const leave = new Signal();
      const child = async (): Promise<void> => {
        await newLock(name).lock();
        inside.give();
        await leave.given;
        await section.work();
        await newLock(name).unlock();
      };
      await lock.lock();
      const running = child();
      await inside.given;
      await lock.unlock();
      const afterUnlock = isInside(lock);
      const unlockedAgain = await outcome(lock.unlock());
      const stillLocked = await lock.isLocked();
      leave.give();
      await takeTurn(lock, section);
      await running;
      return { afterUnlock, unlockedAgain, stillLocked, ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { afterUnlock: false, unlockedAgain: NOT_OWNER, stillLocked: true, ...exclusive(2), locked: false },
  },
  {
    name: 'a child that locks after the hold it was started in is gone is a stranger to its parent',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const goOn = new Signal();
      const child = async (): Promise<void> => {
        await goOn.given;
        await takeTurn(newLock(name), section, 2);
      };
      await lock.lock();
      const running = child();
      await lock.unlock();
      await lock.lock();
      goOn.give();
      await section.work(5);
      await lock.unlock();
      await running;
      return { ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { ...exclusive(2), locked: false },
  },
  {
    name: 'a branch that waits for its turn while its parent unlocks is granted later',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const inside = new Signal();
      const leave = new Signal();
      const first = async (): Promise<void> => {
        await newLock(name).withLock(async () => {
          inside.give();
          await section.work();
          await leave.given;
        });
      };
      await lock.lock();
      const branches = [first(), inside.given.then(() => takeTurn(newLock(name), section))];
      await inside.given;
      await pause(5);
      await lock.unlock();
      leave.give();
      await Promise.all(branches);
      return { ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { ...exclusive(2), locked: false },
  },
  {
    name: 'a service whose methods nest works for two callers at once',
    async run({ newLock }, name) {
      const section = new Section();
      class Orders {
        private readonly lock = newLock(name);
        async place(): Promise<string> {
          await this.lock.lock();
          try {
            await this.reserve();
            return 'placed';
          } finally {
            await this.lock.unlock();
          }
        }
        async reserve(): Promise<void> {
          await this.lock.lock();
          try {
            await section.work();
          } finally {
            await this.lock.unlock();
          }
        }
      }
      const orders = new Orders();
      const placed = await Promise.all([orders.place(), orders.place()]);
      return { placed, ...section.facts(), locked: await newLock(name).isLocked() };
    },
    expected: { placed: ['placed', 'placed'], ...exclusive(2), locked: false },
  },
  {
    name: 'five requests at once, a handle of the module or one each, with a nested service',
    async run({ newLock }, name) {
      const section = new Section();
      const shared = newLock(name);
      const answers = await Promise.all(
        [0, 1, 2, 3, 4].map(async (request) => {
          const lock = request % 2 === 0 ? shared : newLock(name);
          if (!(await lock.tryLock(5_000))) return 'busy';
          try {
            await section.work();
            return await nested(newLock(name));
          } finally {
            await lock.unlock();
          }
        }),
      );
      return { answers, ...section.facts(), locked: await shared.isLocked() };
    },
    expected: { answers: [true, true, true, true, true], ...exclusive(5), locked: false },
  },
  {
    name: 'a request that never got in cannot unlock for the one that did',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const inside = new Signal();
      const leave = new Signal();
      const request = async (work: () => Promise<void>): Promise<unknown> => {
        const taken = await lock.tryLock();
        if (taken) await work();
        return [taken, await outcome(lock.unlock())];
      };
      const holding = request(async () => {
        inside.give();
        await leave.given;
        await section.work();
      });
      await inside.given;
      const refused = await Promise.all([request(() => section.work()), request(() => section.work())]);
      leave.give();
      const answers = [await holding, ...refused];
      return { answers, ...section.facts(), locked: await lock.isLocked() };
    },
    expected: {
      answers: [
        [true, 'ok'],
        [false, NOT_OWNER],
        [false, NOT_OWNER],
      ],
      ...exclusive(1),
      locked: false,
    },
  },
  {
    name: 'middleware that locks and calls next has its handler inside',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      type Next = () => Promise<unknown>;
      const middleware = async (next: Next): Promise<unknown> => {
        await lock.lock();
        return next();
      };
      const handler = async (): Promise<unknown> => {
        await section.work();
        const reentered = await nested(newLock(name));
        return [reentered, await outcome(lock.unlock())];
      };
      const answers = await Promise.all([middleware(handler), middleware(handler)]);
      return { answers, ...section.facts(), locked: await lock.isLocked() };
    },
    expected: {
      answers: [
        [true, 'ok'],
        [true, 'ok'],
      ],
      ...exclusive(2),
      locked: false,
    },
  },
  {
    name: 'a flow that goes from lock to lock hand over hand is inside the locks that it has not released',
    async run({ newLock }, name) {
      const path = [0, 1, 2, 3, 4].map((at) => newLock(name + ' ' + String(at)));
      const section = new Section();
      const walk = async (): Promise<boolean[][]> => {
        const seen: boolean[][] = [];
        let behind: OwnershipLock | undefined;
        for (const lock of path) {
          await lock.lock();
          await behind?.unlock();
          behind = lock;
          seen.push(path.map(isInside));
        }
        await section.work();
        await behind?.unlock();
        return seen;
      };
      const [one, other] = await Promise.all([walk(), walk()]);
      return { inside: one.map((step) => step.indexOf(true)), same: String(one) === String(other), ...section.facts() };
    },
    expected: { inside: [0, 1, 2, 3, 4], same: true, ...exclusive(2) },
  },
];
