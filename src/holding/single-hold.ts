import { Hold } from './hold.js';
import type { HoldRecord } from './hold-record.js';
import { checkLease } from '../lease-time.js';

/**
 * Told when a hold can no longer be given back because nothing refers to it. It only warns: a lock kept for the life
 * of the process is a legitimate use.
 */
const leaked = new FinalizationRegistry<HoldRecord>((record) => {
  if (record.state !== 'open') return;
  const since = record.site === undefined ? '' : ` taken at ${record.site.toString()}`;
  process.emitWarning(
    `the hold on "${record.tenure.protocol.name}"${since} can no longer be given back: nothing refers to it. ` +
      'It is kept and renewed until close().',
    { code: 'HOLDFAST_HOLD_LEAKED' },
  );
});

/** From the first renewal on: watching every short section would cost it more than the rest of its bookkeeping. */
export function watchForLeak(record: HoldRecord): void {
  if (record.hold === undefined) return;
  leaked.register(record.hold, record);
  record.hold = undefined;
}

/** A hold of one lock under one name. */
export class SingleHold extends Hold {
  readonly #record: HoldRecord;

  /** @internal */
  constructor(record: HoldRecord) {
    super();
    this.#record = record;
    record.hold = this;
  }

  override get lockName(): string {
    return this.#record.tenure.protocol.name;
  }

  override get owner(): string {
    return this.#record.tenure.owner;
  }

  override get signal(): AbortSignal {
    this.#record.tenure.lease.check();
    return this.#record.signal;
  }

  override validFor(): number {
    return this.#record.state === 'open' ? Math.floor(this.#record.tenure.lease.validFor()) : 0;
  }

  override async extend(leaseTime: number): Promise<void> {
    return this.#record.tenure.lease.extend(this.#record, checkLease(leaseTime));
  }

  override release(): Promise<void> {
    return this.#record.tenure.release(this.#record);
  }

  /** @internal */
  override get open(): boolean {
    return this.#record.aroundItsFlow;
  }

  /** @internal */
  override giveBack(): Promise<void> {
    return this.#record.givingBack ?? this.release();
  }

  /** @internal */
  static recordOf(hold: SingleHold): HoldRecord {
    return hold.#record;
  }
}

/** A hold of a fenced lock. */
export class FencedHold extends SingleHold {
  /**
   * The fencing token that this hold was granted with. Every later one is larger, so a resource that remembers the
   * largest it has seen can turn away whoever lost the lock without noticing.
   */
  get token(): bigint {
    return SingleHold.recordOf(this).token as bigint;
  }
}

export const holdFor = (record: HoldRecord): SingleHold =>
  record.token === undefined ? new SingleHold(record) : new FencedHold(record);
