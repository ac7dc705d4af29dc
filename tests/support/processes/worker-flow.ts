import type { HoldInfo, LockSpec, Step, WorkerAcquireOptions } from './worker-orders.js';

/** Steps of one flow. Each promise settles as the call in the worker does; an error comes as a WorkerError. */
export class WorkerFlow {
  constructor(
    private readonly take: (step: Step) => Promise<unknown>,
    private readonly flow: (name: string) => WorkerFlow,
  ) {}

  /** Any method of any primitive; `args` are sent as they are, but for options' `signal` and `context`. */
  async call(lock: LockSpec, method: string, ...args: unknown[]): Promise<unknown> {
    return (await this.#call(lock, method, args)).value;
  }

  async lock(lock: LockSpec, leaseTime?: number, options?: WorkerAcquireOptions): Promise<HoldInfo> {
    return (await this.#call(lock, 'lock', [leaseTime, options])).hold!;
  }

  /** The hold, or undefined if the lock was busy. */
  async tryLock(
    lock: LockSpec,
    waitTime?: number,
    leaseTime?: number,
    options?: WorkerAcquireOptions,
  ): Promise<HoldInfo | undefined> {
    return (await this.#call(lock, 'tryLock', [waitTime, leaseTime, options])).hold;
  }

  async unlock(lock: LockSpec, options?: { context?: string }): Promise<void> {
    await this.#call(lock, 'unlock', options === undefined ? [] : [options]);
  }

  async acquire(lock: LockSpec, options: WorkerAcquireOptions = {}): Promise<HoldInfo> {
    return (await this.#call(lock, 'acquire', [options])).hold!;
  }

  async tryAcquire(lock: LockSpec, options: WorkerAcquireOptions = {}): Promise<HoldInfo | undefined> {
    return (await this.#call(lock, 'tryAcquire', [options])).hold;
  }

  async release(hold: HoldInfo): Promise<void> {
    await this.take({ op: 'release', hold: hold.hold });
  }

  async extend(hold: HoldInfo, leaseTime: number): Promise<void> {
    await this.take({ op: 'extend', hold: hold.hold, leaseTime });
  }

  /** Enters the body of a `withLock`: the flow's next steps are made inside, until `leave`. */
  async enter(lock: LockSpec, options: WorkerAcquireOptions = {}): Promise<HoldInfo> {
    return (await this.take({ op: 'enter', lock, options })) as HoldInfo;
  }

  /** The same with `hold.run`. */
  async run(hold: HoldInfo): Promise<void> {
    await this.take({ op: 'run', hold: hold.hold });
  }

  /** Ends the innermost body, with an error if one is given; settles as `withLock` does. */
  async leave(fails?: string): Promise<void> {
    await this.take({ op: 'leave', fails });
  }

  /** Starts another flow from inside of this one. */
  async fork(name: string): Promise<WorkerFlow> {
    await this.take({ op: 'fork', flow: name });
    return this.flow(name);
  }

  /** One section of a shared counter. */
  async section(port: number, name: string, who: string, workMs?: number): Promise<void> {
    await this.take({ op: 'section', port, name, who, workMs });
  }

  async #call(lock: LockSpec, method: string, args: unknown[]): Promise<{ value: unknown; hold?: HoldInfo }> {
    return (await this.take({ op: 'call', lock, method, args })) as { value: unknown; hold?: HoldInfo };
  }
}
