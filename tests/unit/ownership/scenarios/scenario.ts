/*
 * Who is inside which hold: one scenario for each way people write code around a lock. They ask for nothing but the
 * locks they are given and import nothing else, so that they run on any implementation, under any version of Node and
 * as whatever a compiler makes of them.
 */

export interface OwnershipHold {
  release(): Promise<void>;
  run<T>(fn: () => T): T;
}

/** What the scenarios use of a lock. */
export interface OwnershipLock {
  lock(): Promise<void>;
  tryLock(waitTime?: number): Promise<boolean>;
  acquire(): Promise<OwnershipHold>;
  unlock(): Promise<void>;
  withLock<T>(fn: (hold: OwnershipHold) => T | PromiseLike<T>): Promise<T>;
  currentHold(): OwnershipHold | undefined;
  getHoldCount(): Promise<number>;
  isHeldByCurrentContext(): Promise<boolean>;
  isLocked(): Promise<boolean>;
  forceUnlock(): Promise<boolean>;
}

export interface OwnershipAdapter {
  /** A handle for the lock of that name; each call makes a new one. */
  newLock: (name: string) => OwnershipLock;
  lockContext: { run<T>(fn: () => T): T };
}

export type Facts = Record<string, unknown>;

export interface OwnershipScenario {
  readonly name: string;
  /** Each scenario has locks of its own, named after itself. */
  run(adapter: OwnershipAdapter, name: string): Promise<Facts>;
  readonly expected: Facts;
}

export const NOT_OWNER = 'ERR_LOCK_NOT_OWNER';

export function pause(ms = 0): Promise<void> {
  return new Promise((resume) => {
    setTimeout(resume, ms);
  });
}

/** `ok`, or the code of the error. Called by whoever unlocks, so it has no hold of its own. */
export async function outcome(unlocking: Promise<unknown>): Promise<unknown> {
  try {
    await unlocking;
    return 'ok';
  } catch (error) {
    return (error as { code?: unknown }).code ?? String(error);
  }
}

/** What the lock protects: a counter that loses updates and a look at how many are inside. */
export class Section {
  private inside = 0;
  private most = 0;
  private counter = 0;
  private entered = 0;

  async work(ms = 0): Promise<void> {
    this.entered += 1;
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    const read = this.counter;
    await pause(ms);
    this.counter = read + 1;
    this.inside -= 1;
  }

  facts(): Facts {
    return { entered: this.entered, counted: this.counter, mostInside: this.most };
  }
}

export const exclusive = (entered: number): Facts => ({ entered, counted: entered, mostInside: 1 });

/** Locks, works, unlocks. */
export async function takeTurn(lock: OwnershipLock, section: Section, ms = 0): Promise<void> {
  await lock.lock();
  try {
    await section.work(ms);
  } finally {
    await lock.unlock();
  }
}

/** As a service deep below would: by a handle of its own, not waiting. */
export async function nested(lock: OwnershipLock): Promise<boolean> {
  if (!(await lock.tryLock())) return false;
  await pause();
  await lock.unlock();
  return true;
}

export const isInside = (lock: OwnershipLock): boolean => lock.currentHold() !== undefined;

/** Something one flow waits for and another one gives. */
export class Signal {
  give!: () => void;
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}

/** Held by a flow that the caller is not in. */
export function holdElsewhere(lock: OwnershipLock): Promise<OwnershipHold> {
  const holder = async (): Promise<OwnershipHold> => lock.acquire();
  return holder();
}
