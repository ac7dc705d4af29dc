import { boundDeferred } from '../../../src/ownership/bound-promise.js';
import { currentHolds, runInside, runOutside, type FlowHold } from '../../../src/ownership/flow.js';
import type { OwnershipAdapter, OwnershipHold, OwnershipLock } from '../../unit/ownership/scenarios/scenario.js';

/*
 * The ownership rules on a lock in memory, for tests of the flow inside each hold. Every command is a macrotask, so
 * that each call loses its place on the stack, as a call to a server does.
 */

/** Where at most one hold is open at a time: the lock itself, and each hold for the branches directly inside it. */
class Place {
  taken = false;
  readonly #waiting = new Set<() => void>();

  free(): void {
    this.taken = false;
    this.changed();
  }

  changed(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  change(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        clearTimeout(timer);
        resolve();
      };
      const timer = Number.isFinite(limitMs) ? setTimeout(wake, limitMs) : undefined;
      this.#waiting.add(wake);
    });
  }
}

class FakeHold implements FlowHold, OwnershipHold {
  open = true;
  readonly branches = new Place();

  constructor(
    readonly lockName: string,
    readonly bare: boolean,
    readonly tree: { holds: number },
    private readonly place: Place,
    private readonly root: Place,
  ) {
    place.taken = true;
    tree.holds += 1;
  }

  async release(): Promise<void> {
    if (!this.open) return;
    this.open = false;
    await command();
    this.tree.holds -= 1;
    // A hold may outlive the one it was opened in: the lock is free when the last of them is gone.
    if (this.place !== this.root) this.place.free();
    if (this.tree.holds === 0) this.root.free();
    this.branches.changed();
  }

  run<T>(fn: () => T): T {
    return runInside(this, fn);
  }
}

class FakeLock implements OwnershipLock {
  constructor(
    readonly name: string,
    private readonly root: Place,
  ) {}

  lock(): Promise<void> {
    return bound(this.#take(Infinity, true), () => undefined);
  }

  tryLock(waitMs = 0): Promise<boolean> {
    return bound(this.#take(waitMs, true), (hold) => hold !== undefined);
  }

  acquire(): Promise<OwnershipHold> {
    return bound(this.#take(Infinity, false), (hold) => hold!);
  }

  async unlock(): Promise<void> {
    const hold = this.#around().findLast(({ bare }) => bare);
    if (hold === undefined) {
      throw Object.assign(new Error(`this flow does not hold "${this.name}"`), { code: 'ERR_LOCK_NOT_OWNER' });
    }
    await hold.release();
  }

  async withLock<T>(fn: (hold: OwnershipHold) => T | PromiseLike<T>): Promise<T> {
    const hold = (await this.#take(Infinity, false))!;
    try {
      return await hold.run(() => fn(hold));
    } finally {
      await hold.release();
    }
  }

  currentHold(): OwnershipHold | undefined {
    return this.#around().at(-1);
  }

  async getHoldCount(): Promise<number> {
    await command();
    return this.#around().at(-1)?.tree.holds ?? 0;
  }

  async isHeldByCurrentContext(): Promise<boolean> {
    await command();
    return this.#around().length > 0;
  }

  async isLocked(): Promise<boolean> {
    await command();
    return this.root.taken;
  }

  async forceUnlock(): Promise<boolean> {
    await command();
    const { taken } = this.root;
    this.root.free();
    return taken;
  }

  #around(): FakeHold[] {
    return currentHolds().filter(
      (hold): hold is FakeHold => hold instanceof FakeHold && hold.open && hold.lockName === this.name,
    );
  }

  async #take(waitMs: number, bare: boolean): Promise<FakeHold | undefined> {
    const deadline = performance.now() + waitMs;
    const around = this.#around();
    for (;;) {
      await command();
      const parent = around.findLast(({ open }) => open);
      const place = parent?.branches ?? this.root;
      if (!place.taken) return new FakeHold(this.name, bare, parent?.tree ?? { holds: 0 }, place, this.root);
      const left = deadline - performance.now();
      if (left <= 0) return undefined;
      await place.change(left);
    }
  }
}

/** Binds only the promise that the caller gets: the code here must not enter the hold. */
function bound<T>(taking: Promise<FakeHold | undefined>, answer: (hold: FakeHold | undefined) => T): Promise<T> {
  const deferred = boundDeferred<T>();
  taking.then(
    (hold) => deferred.resolve(answer(hold), hold),
    (error: unknown) => deferred.reject(error),
  );
  return deferred.promise;
}

function command(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** All handles of one name are one lock. */
export function fakeAdapter(): OwnershipAdapter {
  const roots = new Map<string, Place>();
  return {
    newLock(name) {
      const root = roots.get(name) ?? new Place();
      roots.set(name, root);
      return new FakeLock(name, root);
    },
    lockContext: { run: runOutside },
  };
}
