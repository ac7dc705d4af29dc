/*
 * The flow inside each hold: one scenario for each way to write code around a lock. The scenarios use only the given
 * locks and import nothing else, so that they run on any implementation, with any version of Node.js and after any
 * compiler.
 */

export interface OwnershipHold {
  release(): Promise<void>;
  run<T>(fn: () => T): T;
}

/** The part of a lock that the scenarios use. */
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
  /** Each scenario has its own locks, named after the scenario. */
  run(adapter: OwnershipAdapter, name: string): Promise<Facts>;
  readonly expected: Facts;
}

export const NOT_OWNER = 'ERR_LOCK_NOT_OWNER';

export function pause(ms = 0): Promise<void> {
  return new Promise((resume) => {
    setTimeout(resume, ms);
  });
}

/** Returns `ok`, or the code of the error. It has no hold of its own, because the code that unlocks calls it. */
export async function outcome(unlocking: Promise<unknown>): Promise<unknown> {
  try {
    await unlocking;
    return 'ok';
  } catch (error) {
    return (error as { code?: unknown }).code ?? String(error);
  }
}

/** The state that the lock protects: a counter that can lose updates, and the number of flows inside. */
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

/** A call like that of a service deep below: with its own handle, without a wait. */
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
