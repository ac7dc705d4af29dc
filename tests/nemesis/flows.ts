import {
  LockContext,
  lockContext,
  type AcquireOptions,
  type ContextOptions,
  type Hold,
  type Lock,
  type LockClient,
} from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import type { HistoryRecorder } from '../support/history-recorder.mjs';
import { stamp } from '../support/history-recorder.mjs';
import { Random } from '../support/random.js';
import type { WorkerParts } from '../support/worker-orders.js';

export interface FlowOptions {
  readonly seed: string;
  readonly flows: number;
  /** The last one is also forced open now and then. */
  readonly locks: readonly string[];
  readonly commandTimeout: number;
  readonly lockWatchdogTimeout: number;
  /** On average, between two sections of a flow. */
  readonly pauseMs: number;
}

export interface FlowResult {
  readonly sections: number;
  /** Calls that gave no hold, by the code of the error, or `busy`. */
  readonly refused: Readonly<Record<string, number>>;
  /** Releases that rejected, by code. */
  readonly notReleased: Readonly<Record<string, number>>;
  /** Locks that the client believes to hold when all flows have ended. */
  readonly heldAtEnd: readonly string[];
}

const SHORTEST_LEASE_MS = 60;
const LONGEST_LEASE_MS = 2_400;
const DEEPEST = 3;
/** A release that was late when it was sent names owners of its time; it may still be under way for so long. */
const LATEST_DELIVERY_MS = 11_000;

/** Locks whose names begin so are fair. */
export const FAIR = 'fair:';

const lockOf = (client: LockClient, name: string, options: ContextOptions = {}): Lock =>
  name.startsWith(FAIR) ? client.getFairLock(name, options) : client.getLock(name, options);

/** What flows of this process wait for, in words. */
const awaited = new Set<{ readonly what: string; readonly since: number }>();

/** Returns what to call when it has come. */
function awaiting(what: string): () => void {
  const entry = { what, since: performance.now() };
  awaited.add(entry);
  return () => void awaited.delete(entry);
}

/** Not for a bare lock(): that belongs to whoever awaits it. */
const during = <T>(what: string, call: Promise<T>): Promise<T> => call.finally(awaiting(what));

/** Instead of options: asks what flows that do not end wait for. */
export const WHAT_IS_AWAITED = 'what is awaited';

/** Flows that do at random what can be done with a lock, until they are told to stop, and write it down. */
export async function run(parts: WorkerParts, options: unknown): Promise<FlowResult | string[]> {
  if (options === WHAT_IS_AWAITED)
    return [...awaited].map(({ what, since }) => `${what} for ${(performance.now() - since).toFixed(0)} ms`);
  const load = new Load(parts, options as FlowOptions);
  await load.run();
  return load.result();
}

class Load {
  readonly options: FlowOptions;
  readonly client: LockClient;
  readonly recorder: HistoryRecorder;
  sections = 0;
  readonly refused: Record<string, number> = {};
  readonly notReleased: Record<string, number> = {};
  /** Sections that nobody waits for. */
  readonly children = new Set<Promise<void>>();
  readonly #leases: number[] = [];
  readonly #leaseOrder: Random;

  constructor(
    readonly parts: WorkerParts,
    options: FlowOptions,
  ) {
    this.options = options;
    this.client = parts.clients.get('client')!;
    this.recorder = parts.recorder!;
    this.#leaseOrder = new Random(`${parts.name} leases`, options.seed);
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.options.flows }, (_, index) => new Flow(this, index).run()));
    while (this.children.size > 0) await Promise.all(this.children);
  }

  result(): FlowResult {
    const { sections, refused, notReleased } = this;
    return { sections, refused, notReleased, heldAtEnd: this.client.holds().map(({ lockName }) => lockName) };
  }

  /** No two calls of this process have the same for a long while: so their requests can be told apart at the server. */
  nextLease(): number {
    if (this.#leases.length === 0) {
      for (let ms = SHORTEST_LEASE_MS; ms < LONGEST_LEASE_MS; ms++) this.#leases.push(ms);
      for (let i = this.#leases.length - 1; i > 0; i--) {
        const j = this.#leaseOrder.below(i + 1);
        [this.#leases[i], this.#leases[j]] = [this.#leases[j]!, this.#leases[i]!];
      }
    }
    return this.#leases.pop()!;
  }

  count(counts: Record<string, number>, error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    counts[code] = (counts[code] ?? 0) + 1;
  }
}

type Body = (hold: Hold) => Promise<void>;

class Flow {
  readonly #random: Random;

  constructor(
    private readonly load: Load,
    private readonly index: number,
  ) {
    this.#random = new Random(`${load.parts.name} flow ${index}`, load.options.seed);
  }

  async run(): Promise<void> {
    const { stopping } = this.load.parts;
    const { locks, pauseMs } = this.load.options;
    while (!stopping.aborted) {
      await pause(this.#random.below(2 * pauseMs));
      // Half of all sections meet on a third of the locks.
      const few = this.#random.below(2) === 0;
      const name = locks[this.#random.below(few ? Math.ceil(locks.length / 3) : locks.length)]!;
      await this.#section(name, 0);
      if (name === locks.at(-1) && this.#random.below(40) === 0) await this.#force(name);
    }
  }

  /** One section in one of the ways there are. Settles when all that it took has been given back. */
  async #section(name: string, depth: number, context?: LockContext): Promise<void> {
    const random = this.#random;
    const under = context ?? (depth === 0 && random.below(8) === 0 ? new LockContext() : undefined);
    const lock = lockOf(this.load.client, name, under ? { context: under } : {});
    const body: Body = (hold) => this.#inside(lock, hold, depth, under);
    switch (random.below(5)) {
      case 0:
        return this.#bareLock(lock, depth, body);
      case 1:
        return this.#bareTryLock(lock, depth, body);
      case 2:
        return this.#asHold(lock, body, this.#waitTime());
      case 3:
        return this.#asHold(lock, body, undefined);
      default:
        return this.#within(lock, body);
    }
  }

  async #bareLock(lock: Lock, depth: number, body: Body): Promise<void> {
    const call = this.#invoked(lock, Infinity);
    const come = awaiting(`lock() of ${lock.name}`);
    try {
      await lock.lock(call.leaseTime, { signal: call.signal });
    } catch (error) {
      return call.refused(error);
    } finally {
      come();
    }
    await this.#insideBare(lock, call, depth, body);
  }

  async #bareTryLock(lock: Lock, depth: number, body: Body): Promise<void> {
    const waitTime = this.#waitTime();
    const call = this.#invoked(lock, waitTime);
    const come = awaiting(`tryLock() of ${lock.name}`);
    try {
      if (!(await lock.tryLock(waitTime, call.leaseTime, { signal: call.signal }))) return call.refused('busy');
    } catch (error) {
      return call.refused(error);
    } finally {
      come();
    }
    await this.#insideBare(lock, call, depth, body);
  }

  async #insideBare(lock: Lock, call: Call, depth: number, body: Body): Promise<void> {
    const hold = lock.currentHold();
    // Granted, and given back by nobody: the library does not know its own hold.
    if (!hold) throw new Error(`no hold of ${lock.name} around the code that awaited it`);
    call.granted(hold);
    await body(hold);
    const released = await this.#giveBack(hold, () => lock.unlock());
    // A second unlock() waits for what goes on in the background; with a hold around this one it would end that.
    if (!released && depth === 0 && this.#random.below(3) === 0)
      await during(`a second unlock() of ${lock.name}`, lock.unlock()).catch(() => undefined);
  }

  async #asHold(lock: Lock, body: Body, waitTime: number | undefined): Promise<void> {
    const call = this.#invoked(lock, waitTime ?? Infinity);
    const options: AcquireOptions = { waitTime, leaseTime: call.leaseTime, signal: call.signal };
    let hold: Hold | null;
    try {
      const acquiring = waitTime === undefined ? lock.acquire(options) : lock.tryAcquire(options);
      hold = await during(`acquire() of ${lock.name}`, acquiring);
    } catch (error) {
      return call.refused(error);
    }
    if (!hold) return call.refused('busy');
    call.granted(hold);
    const mine = hold;
    // Inside the hold or not: the code that gives a hold back need not be the code that took it.
    if (this.#random.below(3) === 0) await lockContext.run(() => mine.run(() => body(mine)));
    else await body(mine);
    await this.#giveBack(mine, () => mine.release());
  }

  async #within(lock: Lock, body: Body): Promise<void> {
    const waitTime = this.#random.below(2) === 0 ? this.#waitTime() : Infinity;
    const call = this.#invoked(lock, waitTime);
    const given: Hold[] = [];
    const { recorder } = this.load;
    try {
      const options = { waitTime, leaseTime: call.leaseTime, signal: call.signal };
      const within = lock.withLock(options, async (hold) => {
        given.push(hold);
        call.granted(hold);
        await body(hold);
        recorder.releasing(hold);
        queueMicrotask(() => recorder.confirm(hold.owner));
      });
      await during(`withLock() of ${lock.name}`, within);
      for (const hold of given) recorder.released(hold);
    } catch (error) {
      if (given.length === 0) return call.refused(error);
      for (const hold of given) recorder.released(hold, error);
      this.load.count(this.load.notReleased, error);
    }
    this.load.sections += 1;
  }

  async #giveBack(hold: Hold, release: () => Promise<void>): Promise<boolean> {
    const { recorder, notReleased } = this.load;
    this.load.sections += 1;
    recorder.releasing(hold);
    const released = release();
    recorder.confirm(hold.owner); // others of this owner may have been good for this one's lease
    try {
      await during(`the release of ${hold.lockName}`, released);
      recorder.released(hold);
      return true;
    } catch (error) {
      recorder.released(hold, error);
      this.load.count(notReleased, error);
      return false;
    }
  }

  /** What is done inside of a hold. */
  async #inside(lock: Lock, hold: Hold, depth: number, context: LockContext | undefined): Promise<void> {
    const random = this.#random;
    await pause(random.below(20));
    if (depth >= DEEPEST) return;
    switch (random.below(12)) {
      case 0:
      case 1:
        return this.#section(lock.name, depth + 1, context);
      case 2:
        // A context is one flow.
        if (context) return this.#section(lock.name, depth + 1, context);
        await Promise.all([this.#section(lock.name, depth + 1), this.#section(lock.name, depth + 1)]);
        return;
      case 3:
        if (context === undefined) this.#outlive(lock.name, depth);
        return;
      case 4:
        await this.#extend(hold);
        return;
      case 5:
        // Longer than many leases.
        await pause(random.below(800));
        return;
      case 6:
        // A stranger among ourselves; it waits for a while only, since we do not give way.
        await lockContext.run(() =>
          this.#asHold(lockOf(this.load.client, lock.name), () => pause(1), random.below(60)),
        );
        return;
      case 7: {
        const { locks } = this.load.options;
        // Another lock, with an end to the wait: two flows may want two locks in opposite order.
        const other = lockOf(this.load.client, random.pick(locks.filter((name) => name !== lock.name)));
        return this.#asHold(other, () => pause(random.below(20)), random.below(200));
      }
      default:
        return;
    }
  }

  /** A child that keeps the lock when its parent has given it back. */
  #outlive(name: string, depth: number): void {
    const { children } = this.load;
    const child = this.#section(name, depth + 1).finally(() => children.delete(child));
    children.add(child);
  }

  async #extend(hold: Hold): Promise<void> {
    const { recorder } = this.load;
    await during(`extend() of ${hold.lockName}`, hold.extend(this.load.nextLease())).catch((error: unknown) =>
      this.load.count(this.load.refused, error),
    );
    recorder.confirm(hold.owner);
  }

  async #force(name: string): Promise<void> {
    const from = stamp();
    await during(`forceUnlock() of ${name}`, lockOf(this.load.client, name).forceUnlock()).catch(() => undefined);
    this.load.recorder.write({ type: 'broken', from, at: stamp() + LATEST_DELIVERY_MS, locks: [name] });
  }

  #waitTime(): number {
    return this.#random.below(3) === 0 ? 0 : this.#random.below(1_500);
  }

  #invoked(lock: Lock, waitTime: number): Call {
    const random = this.#random;
    const leaseTime = random.below(3) === 0 ? undefined : this.load.nextLease();
    return new Call(this.load, lock, waitTime, leaseTime, random.below(6) === 0 ? random.below(600) : undefined);
  }
}

/** One acquiring call, written down. */
class Call {
  readonly signal: AbortSignal | undefined;
  readonly #id: string;
  readonly #parent: Hold | undefined;
  #abort: NodeJS.Timeout | undefined;

  constructor(
    private readonly load: Load,
    lock: Lock,
    waitTime: number,
    readonly leaseTime: number | undefined,
    abortAfterMs: number | undefined,
  ) {
    if (abortAfterMs !== undefined) {
      const controller = new AbortController();
      this.signal = controller.signal;
      this.#abort = setTimeout(() => controller.abort(), abortAfterMs);
    }
    this.#parent = lock.currentHold();
    // Inside a hold it may have to let the request before it end first.
    const deadlines = this.#parent ? 2 : 1;
    const settlesWithin = waitTime === Infinity ? undefined : waitTime + deadlines * load.options.commandTimeout;
    this.#id = load.recorder.invoked(lock.name, settlesWithin, leaseTime);
  }

  granted(hold: Hold): void {
    clearTimeout(this.#abort);
    this.load.recorder.granted(this.#id, hold, { parent: this.#parent });
  }

  refused(reason: unknown): void {
    clearTimeout(this.#abort);
    this.load.recorder.refused(this.#id, reason);
    this.load.count(this.load.refused, reason);
  }
}
