import { AsyncLocalStorage } from 'node:async_hooks';
import { boundDeferred } from '../../../src/ownership/bound-promise.js';
import { currentHolds, runInside, runOutside, type FlowHold } from '../../../src/ownership/flow.js';
import type { Random } from '../../support/random.js';

/*
 * Random programs: flows that lock, unlock, await, fork, spawn and set timers. Each flow tracks the holds around it by
 * the rules alone, and compares them with the library at each step.
 */

class Hold implements FlowHold {
  open = true;
  constructor(readonly lockName: string) {}
}

/** The tracked holds around a flow. A list is never changed, so that a child keeps the list of its start. */
type Mine = readonly Hold[];

interface Acquisition {
  readonly promise: Promise<boolean>;
  readonly answer: (granted: boolean) => void;
}

export type BindAcquisition = (hold: FlowHold) => Acquisition;

const bindToAwaiter: BindAcquisition = (hold) => {
  const deferred = boundDeferred<boolean>();
  return {
    promise: deferred.promise,
    answer: (granted) => (granted ? deferred.resolve(true, hold) : deferred.resolve(false)),
  };
};

export interface RandomFlowsResult {
  readonly comparisons: number;
  readonly mismatches: number;
}

interface Scope {
  readonly mine: Mine;
  /** The value in the AsyncLocalStorage of the program. */
  readonly tag: number;
  readonly depth: number;
}

const LOCKS = ['a', 'b'];
const MAX_DEPTH = 4;
const MAX_STEPS = 8;

export async function runRandomFlows(
  random: Random,
  wanted: number,
  bind: BindAcquisition = bindToAwaiter,
): Promise<RandomFlowsResult> {
  const tags = new AsyncLocalStorage<number>();
  let comparisons = 0;
  let mismatches = 0;
  let tagsDrawn = 0;
  let running: Promise<void>[] = [];

  function compare({ mine, tag }: Scope): void {
    comparisons += 1;
    const [seen, expected] = [currentHolds().filter(isOpen), mine.filter(isOpen)];
    const same = seen.length === expected.length && seen.every((hold, at) => hold === expected[at]);
    if (!same || tags.getStore() !== tag) mismatches += 1;
  }

  /** Requests a lock. The grant does not depend on the flow of the request. */
  function acquire(): { hold: Hold; promise: Promise<boolean>; granted: boolean } {
    const hold = new Hold(random.pick(LOCKS));
    const granted = random.below(8) > 0;
    const { promise, answer } = bind(hold);
    const settle = (): void => answer(granted);
    const start = (): void => {
      const when = random.below(6);
      if (when === 0) settle();
      else if (when === 1) queueMicrotask(settle);
      else if (when === 2) process.nextTick(settle);
      else if (when === 3) setTimeout(settle, random.below(2));
      else setImmediate(settle);
    };
    if (random.below(2) === 0) start();
    else runOutside(start);
    return { hold, promise, granted };
  }

  const entered = (scope: Scope, { hold, granted }: { hold: Hold; granted: boolean }): Scope =>
    granted ? { ...scope, mine: inside(scope.mine, hold) } : scope;

  function spawn(scope: Scope): Promise<void> {
    const flow = flowFrom({ ...scope, depth: scope.depth + 1 });
    running.push(flow);
    return flow;
  }

  /** Each goes on, as the same flow, with the scope it is in by then. */
  type Step = (scope: Scope, go: (scope: Scope) => Promise<void>) => Promise<void>;
  const steps: Step[] = [
    async function awaited(scope, go) {
      const acquisition = acquire();
      await acquisition.promise;
      await go(entered(scope, acquisition));
    },
    async function awaitedLate(scope, go) {
      const acquisition = acquire();
      for (let turn = random.below(4); turn >= 0; turn -= 1) {
        await somewhere();
        compare(scope);
      }
      await acquisition.promise;
      await go(entered(scope, acquisition));
    },
    async function awaitedTwice(scope, go) {
      const acquisition = acquire();
      await acquisition.promise;
      const now = entered(scope, acquisition);
      compare(now);
      await somewhere();
      await acquisition.promise;
      await go(entered(now, acquisition));
    },
    async function awaitedByTwo(scope, go) {
      const acquisition = acquire();
      const other = async (): Promise<void> => {
        await acquisition.promise;
        compare(entered(scope, acquisition));
      };
      running.push(other());
      await acquisition.promise;
      await go(entered(scope, acquisition));
    },
    async function caught(scope, go) {
      const acquisition = acquire();
      await acquisition.promise.catch(() => false);
      await go(entered(scope, acquisition));
    },
    async function chained(scope, go) {
      const acquisition = acquire();
      await acquisition.promise
        .then(async () => {
          const now = entered(scope, acquisition);
          compare(now);
          await somewhere();
          compare(now);
          if (random.below(4) === 0) throw new Error('in the then');
        })
        .finally(() => compare(entered(scope, acquisition)))
        .catch(() => compare(entered(scope, acquisition)));
      await go(entered(scope, acquisition));
    },
    async function failed(scope, go) {
      const rejected = boundDeferred<boolean>();
      setImmediate(() => rejected.reject(new Error('refused')));
      await rejected.promise.catch(() => compare(scope));
      await go(scope);
    },
    async function raced(scope, go) {
      await Promise.race([acquire().promise, somewhere()]);
      await go(scope);
    },
    async function together(scope, go) {
      await Promise.all([acquire().promise, acquire().promise]);
      await go(scope);
    },
    async function inHelper(scope, go) {
      const helper = async (): Promise<boolean> => {
        const acquisition = acquire();
        await acquisition.promise;
        compare(entered(scope, acquisition));
        return acquisition.granted;
      };
      await helper();
      await go(scope);
    },
    async function returnedByHelper(scope, go) {
      const helper = async (): Promise<boolean> => acquire().promise;
      await helper();
      await go(scope);
    },
    async function unlock(scope, go) {
      const lockName = random.pick(LOCKS);
      const held = (holds: readonly FlowHold[]): FlowHold | undefined =>
        holds.findLast((hold) => hold instanceof Hold && hold.open && hold.lockName === lockName);
      const hold = held(currentHolds());
      if (hold !== held(scope.mine)) mismatches += 1;
      await somewhere();
      if (hold instanceof Hold) hold.open = false;
      await go(scope);
    },
    async function child(scope, go) {
      await spawn(scope);
      await go(scope);
    },
    async function spawned(scope, go) {
      void spawn(scope);
      await go(scope);
    },
    async function branches(scope, go) {
      await Promise.all([spawn(scope), spawn(scope), spawn(scope)]);
      await go(scope);
    },
    async function later(scope, go) {
      const start = (): void => void spawn(scope);
      const when = random.below(4);
      if (when === 0) process.nextTick(start);
      else if (when === 1) setImmediate(start);
      else if (when === 2) setTimeout(start, random.below(3));
      else queueMicrotask(start);
      await go(scope);
    },
    async function runIn(scope, go) {
      const hold = new Hold(random.pick(LOCKS));
      await runInside(hold, () => spawn({ ...scope, mine: inside(scope.mine, hold) }));
      if (random.below(2) === 0) hold.open = false;
      await go(scope);
    },
    async function runOut(scope, go) {
      await runOutside(() => spawn({ ...scope, mine: [] }));
      await go(scope);
    },
    async function ownStorage(scope, go) {
      const tag = (tagsDrawn += 1);
      await tags.run(tag, () => spawn({ ...scope, tag }));
      await go(scope);
    },
    async function ownStorageEntered(scope, go) {
      await somewhere(); // entered at once, the hold would be visible to the caller of this flow
      const tag = (tagsDrawn += 1);
      tags.enterWith(tag);
      await go({ ...scope, tag });
    },
    async function inLoop(scope, go) {
      let now = scope;
      for (let round = random.below(4); round >= 0; round -= 1) {
        const acquisition = acquire();
        await acquisition.promise;
        now = entered(now, acquisition);
        compare(now);
        await somewhere();
        compare(now);
        if (random.below(3) > 0) acquisition.hold.open = false;
      }
      await go(now);
    },
    async function waits(scope, go) {
      await somewhere();
      await go(scope);
    },
  ];

  function somewhere(): Promise<boolean> {
    const when = random.below(5);
    return new Promise((resolve) => {
      const resume = (): void => resolve(true);
      if (when === 0) resume();
      else if (when === 1) queueMicrotask(resume);
      else if (when === 2) process.nextTick(resume);
      else if (when === 3) setTimeout(resume, random.below(2));
      else setImmediate(resume);
    });
  }

  async function flowFrom(scope: Scope, left = random.below(MAX_STEPS)): Promise<void> {
    compare(scope);
    if (left === 0 || scope.depth > MAX_DEPTH || comparisons >= wanted) return;
    await random.pick(steps)(scope, (next) => flowFrom(next, left - 1));
  }

  while (comparisons < wanted) {
    const tag = (tagsDrawn += 1);
    for (let flow = 0; flow < 20; flow += 1) running.push(tags.run(tag, () => flowFrom({ mine: [], tag, depth: 0 })));
    while (running.length > 0) {
      const batch = running;
      running = [];
      await Promise.all(batch);
      await new Promise((resume) => setTimeout(resume, 5));
    }
  }
  return { comparisons, mismatches };
}

const isOpen = ({ open }: FlowHold): boolean => open;

function inside(mine: Mine, hold: Hold): Mine {
  return mine.includes(hold) || !hold.open ? mine : [...mine, hold];
}
