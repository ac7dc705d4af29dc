import { trace } from '@opentelemetry/api';
import { LockContext, lockContext, type AcquireOptions, type Hold } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '../../support/random.js';
import type { WorkerParts } from '../../support/processes/worker-orders.js';
import { Call, type Inside } from './call.js';
import { BUSY_FLOWS, takeBusily } from './busy-flow.js';
import { takeCalmly } from './calm-flow.js';
import { forceUnlock } from './force.js';
import { isCounted, isExclusive, isLock, kindOf } from './kinds.js';
import { countDown } from './latch-flow.js';
import { Load, type FlowOptions, type FlowResult } from './load.js';
import { askForOtherKind } from './other-kind.js';
import { takePermits } from './permit-flow.js';
import { beRefused } from './refused-flow.js';
import { Rest } from './rest.js';
import { meets, type Target } from './target.js';

const DEEPEST = 3;
/** Descriptions of the waits of the flows of this process. */
const awaited = new Set<{ readonly what: string; readonly since: number }>();

/** Returns the function to call when the wait has ended. */
function awaiting(what: string): () => void {
  const entry = { what, since: performance.now() };
  awaited.add(entry);
  return () => void awaited.delete(entry);
}

/** Not for lock(), whose hold belongs to the code that awaits it. */
const during = <T>(what: string, call: Promise<T>): Promise<T> => call.finally(awaiting(what));

/** Instead of options: reads the waits of flows that do not end. */
export const WHAT_IS_AWAITED = 'the awaited value';

/** Instead of options: stop between two sections, resolves when all do; and go on. */
export const REST = 'rest';
export const GO_ON = 'go on';
const rest = new Rest();

/** Flows that make random lock calls until they are stopped, and record them. */
export async function run(parts: WorkerParts, options: unknown): Promise<FlowResult | string[] | undefined> {
  if (options === WHAT_IS_AWAITED)
    return [...awaited].map(({ what, since }) => `${what} for ${(performance.now() - since).toFixed(0)} ms`);
  if (options === REST) return rest.begin();
  if (options === GO_ON) return rest.end();
  const load = new Load(parts, options as FlowOptions);
  // The first stack trace would load the package's source map for good, 4.6 MB, and count as a leak.
  process.setSourceMapsEnabled(false);
  rest.join(load.options.flows);
  await Promise.all([
    ...Array.from({ length: load.options.flows }, (_, index) => new Flow(load, index).run()),
    ...load.options.calm.map((name) => takeCalmly(load, name, rest)),
    ...load.options.busy.flatMap((name) =>
      Array.from({ length: BUSY_FLOWS }, (_, flow) => takeBusily(load, name, rest, flow)),
    ),
  ]);
  while (load.children.size > 0) await Promise.all(load.children);
  return load.result();
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
    const { names, twins, pauseMs, forced } = this.load.options;
    for (await rest.pass(); !stopping.aborted; await rest.pass()) {
      await pause(this.#random.below(2 * pauseMs));
      // Half of all sections meet on a third of the names.
      const few = this.#random.below(2) === 0;
      const drawn = names[this.#random.below(few ? Math.ceil(names.length / 3) : names.length)]!;
      const name = twins.length > 0 && this.#random.below(4) === 0 ? this.#random.pick(twins) : drawn;
      // A process that is traced has a request for all that follows; the others' spans are nothing.
      await trace.getTracer('nemesis').startActiveSpan(name, async (span) => {
        await this.#work(name);
        span.end();
      });
      if (name === names.at(-1) && isExclusive(name) && this.#random.below(40) < forced) await this.#force(name);
    }
    rest.leave();
  }

  #work(name: string): Promise<void> {
    if (this.load.options.refusing && this.#random.below(30) === 0) return beRefused(this.load, this.#random);
    if (isCounted(name)) return takePermits(this.load, this.#random, name);
    if (kindOf(name) === 'latch') return countDown(this.load, this.#random, name, this.index);
    return this.#section(name, undefined);
  }

  /** One section in one of the possible forms. Settles when all its holds are released. */
  async #section(name: string, around: Inside | undefined): Promise<void> {
    const random = this.#random;
    const depth = around === undefined ? 0 : around.depth + 1;
    const context = around?.context ?? (depth === 0 && random.below(8) === 0 ? new LockContext() : undefined);
    const target = this.load.targets.draw(name, random, context, around?.target);
    const body: Body = (hold) => this.#inside({ target, hold, depth, context });
    switch (random.below(5)) {
      case 0:
        return this.#bareLock(target, around, body);
      case 1:
        return this.#bareTryLock(target, around, body);
      case 2:
        return this.#asHold(target, around, body, this.#waitTime());
      case 3:
        return this.#asHold(target, around, body, undefined);
      default:
        return this.#within(target, around, body);
    }
  }

  async #bareLock(target: Target, around: Inside | undefined, body: Body): Promise<void> {
    const call = this.#invoked(target, around, Infinity);
    const come = awaiting(`lock() of ${target.lock.name}`);
    try {
      await target.lock.lock(call.leaseTime, { signal: call.signal });
    } catch (error) {
      return call.refused(error);
    } finally {
      come();
    }
    await this.#insideBare(target, call, around, body);
  }

  async #bareTryLock(target: Target, around: Inside | undefined, body: Body): Promise<void> {
    const waitTime = this.#waitTime();
    const call = this.#invoked(target, around, waitTime);
    const { leaseTime, signal } = call;
    const come = awaiting(`tryLock() of ${target.lock.name}`);
    try {
      if (!(await target.lock.tryLock(waitTime, leaseTime, { signal }))) return call.refused('busy');
    } catch (error) {
      return call.refused(error);
    } finally {
      come();
    }
    await this.#insideBare(target, call, around, body);
  }

  async #insideBare({ lock }: Target, call: Call, around: Inside | undefined, body: Body): Promise<void> {
    const hold = lock.currentHold();
    // Granted without a release: the library does not know its own hold.
    if (!hold) throw new Error(`no hold of ${lock.name} around the code that awaited it`);
    call.granted(hold);
    await body(hold);
    const released = await this.#release(call, hold, () => lock.unlock());
    // A second unlock() waits for the background release. With a hold around this one, it would release that hold.
    if (!released && around === undefined && this.#random.below(3) === 0)
      await during(`a second unlock() of ${lock.name}`, lock.unlock()).catch(() => undefined);
  }

  async #asHold(target: Target, around: Inside | undefined, body: Body, waitTime: number | undefined): Promise<void> {
    const { lock } = target;
    const call = this.#invoked(target, around, waitTime ?? Infinity);
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
    await this.#release(call, mine, () => mine.release());
  }

  async #within(target: Target, around: Inside | undefined, body: Body): Promise<void> {
    const waitTime = this.#random.below(2) === 0 ? this.#waitTime() : Infinity;
    const call = this.#invoked(target, around, waitTime);
    const given: Hold[] = [];
    try {
      const options = { waitTime, leaseTime: call.leaseTime, signal: call.signal };
      const within = target.lock.withLock(options, async (hold) => {
        given.push(hold);
        call.granted(hold);
        call.watchRelease(hold);
        await body(hold);
      });
      await during(`withLock() of ${target.lock.name}`, within);
      for (const hold of given) call.released(hold);
    } catch (error) {
      if (given.length === 0) return call.refused(error);
      for (const hold of given) call.released(hold, error);
      this.load.count(this.load.notReleased, error);
    }
    this.load.sections += 1;
  }

  async #release(call: Call, hold: Hold, release: () => Promise<void>): Promise<boolean> {
    this.load.sections += 1;
    try {
      await during(`the release of ${hold.lockName}`, call.recordRelease(hold, release));
      call.released(hold);
      return true;
    } catch (error) {
      call.released(hold, error);
      this.load.count(this.load.notReleased, error);
      return false;
    }
  }

  /** The work inside a hold. */
  async #inside(here: Inside): Promise<void> {
    const { target, hold, depth, context } = here;
    const { name } = target;
    const random = this.#random;
    await pause(random.below(20));
    if (depth >= DEEPEST) return;
    switch (random.below(12)) {
      case 0:
      case 1:
        return this.#section(name, here);
      case 2:
        // A context is one flow.
        if (context) return this.#section(name, here);
        await Promise.all([this.#section(name, here), this.#section(name, here)]);
        return;
      case 3:
        if (context === undefined) this.#outlive(name, here);
        return;
      case 4:
        await this.#extend(hold);
        return;
      case 5:
        // Longer than many leases.
        await pause(random.below(800));
        return;
      case 6: {
        // A stranger among ourselves; it waits for a while only, since we do not give way.
        const stranger = this.load.targets.draw(name, random);
        await lockContext.run(() => this.#asHold(stranger, undefined, () => pause(1), random.below(60)));
        return;
      }
      case 7: {
        const { names, twins } = this.load.options;
        // Another lock, with an end to the wait: two flows may want two locks in opposite order.
        const others = [...names, ...twins].filter((other) => isLock(other) && other !== name && !meets(target, other));
        const other = this.load.targets.draw(random.pick(others), random);
        return this.#asHold(other, undefined, () => pause(random.below(20)), random.below(200));
      }
      case 8:
        return askForOtherKind(this.load, random, here);
      default:
        return;
    }
  }

  /** A child that keeps the lock when its parent has given it back. */
  #outlive(name: string, around: Inside): void {
    const { children } = this.load;
    rest.join();
    const child = this.#section(name, around).finally(() => {
      rest.leave();
      children.delete(child);
    });
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
    const { lock } = this.load.targets.draw(name, this.#random);
    await during(`forceUnlock() of ${name}`, forceUnlock(this.load, name, lock));
  }

  #waitTime(): number {
    return this.#random.below(3) === 0 ? 0 : this.#random.below(1_500);
  }

  #invoked(target: Target, around: Inside | undefined, waitTime: number): Call {
    const random = this.#random;
    const leaseTime = random.below(3) === 0 ? undefined : this.load.nextLease();
    const abortAfterMs = random.below(6) === 0 ? random.below(600) : undefined;
    return new Call(this.load, target, around, waitTime, leaseTime, abortAfterMs);
  }
}
