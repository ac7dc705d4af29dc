import fastq from 'fastq';
import pLimit from 'p-limit';
import PQueue from 'p-queue';
import pRetry from 'p-retry';
import {
  NOT_OWNER,
  Section,
  Signal,
  exclusive,
  isInside,
  nested,
  outcome,
  type OwnershipAdapter,
  type OwnershipScenario,
} from './scenario.js';

type Task<T> = () => Promise<T>;
type AddTask = <T>(task: Task<T>) => Promise<T>;

/** Runs added tasks, a limited number at a time. */
interface Pool {
  readonly library: string;
  readonly make: (concurrency: number) => AddTask;
  /** Whether it runs one caller's task in the async context of another. */
  readonly lends: boolean;
}

const pools: Pool[] = [
  {
    library: 'p-queue 9',
    make(concurrency) {
      const queue = new PQueue({ concurrency });
      return <T>(task: Task<T>) => queue.add(task);
    },
    lends: true,
  },
  {
    library: 'p-limit',
    make: (concurrency) => pLimit(concurrency),
    lends: false,
  },
  {
    library: 'fastq',
    make(concurrency) {
      const queue = fastq.promise<unknown, Task<unknown>>((task) => task(), concurrency);
      return <T>(task: Task<T>) => queue.push(task) as Promise<T>;
    },
    lends: true,
  },
];

/** Three tasks that only lock, one after the other. */
async function takersIn(add: AddTask, { newLock }: OwnershipAdapter, name: string, apart: AddTask): Promise<boolean[]> {
  const task = (): Promise<boolean> => newLock(name).tryLock();
  const taken = await Promise.all([0, 1, 2].map(() => add(() => apart(task))));
  await newLock(name).forceUnlock();
  return taken;
}

/** One flow holds the lock and awaits its task; the task of another flow, queued behind it, tries the lock. */
async function strangersTry(
  add: AddTask,
  { newLock }: OwnershipAdapter,
  name: string,
  apart: AddTask,
): Promise<boolean> {
  const lock = newLock(name);
  const queued = new Signal();
  const started = new Signal();
  const holder = async (): Promise<boolean> => {
    await lock.lock();
    const reentered = add(async () => {
      started.give();
      await queued.given;
      return nested(newLock(name));
    });
    await reentered;
    await tried;
    await lock.unlock();
    return reentered;
  };
  const stranger = async (): Promise<boolean> => {
    await started.given;
    const trying = add(() => apart(() => nested(newLock(name))));
    queued.give();
    return trying;
  };
  const tried = stranger();
  await holder();
  return tried;
}

const poolScenarios = pools.map(({ library, make, lends }): OwnershipScenario => ({
  name: `${library} ${lends ? 'lends holds from task to task, not through lockContext.run' : 'keeps tasks apart'}`,
  async run(adapter, name) {
    const apart: AddTask = (task) => adapter.lockContext.run(task);
    const asIs: AddTask = (task) => task();
    const section = new Section();
    const add = make(3);
    const reentered = await Promise.all(
      [0, 1, 2, 3, 4, 5].map(() =>
        add(() =>
          adapter.newLock(name).withLock(async () => {
            await section.work();
            return nested(adapter.newLock(name));
          }),
        ),
      ),
    );
    return {
      reentered,
      ...section.facts(),
      takers: await takersIn(make(1), adapter, name, asIs),
      takersApart: await takersIn(make(1), adapter, name, apart),
      stranger: await strangersTry(make(1), adapter, name, asIs),
      strangerApart: await strangersTry(make(1), adapter, name, apart),
      locked: await adapter.newLock(name).isLocked(),
    };
  },
  expected: {
    reentered: [true, true, true, true, true, true],
    ...exclusive(6),
    takers: [true, lends, lends],
    takersApart: [true, false, false],
    stranger: lends,
    strangerApart: false,
    locked: false,
  },
}));

export const libraryScenarios: readonly OwnershipScenario[] = [
  ...poolScenarios,
  {
    name: 'p-retry around an acquisition keeps the hold, around the work it does not matter',
    async run({ newLock }, name) {
      const lock = newLock(name);
      await pRetry(() => lock.lock());
      const inside = isInside(lock);
      const unlocked = await outcome(lock.unlock());
      await lock.forceUnlock();
      await lock.lock();
      const reentered = await pRetry(() => nested(newLock(name)));
      await lock.unlock();
      return { inside, unlocked, reentered, locked: await lock.isLocked() };
    },
    expected: { inside: false, unlocked: NOT_OWNER, reentered: true, locked: false },
  },
];
