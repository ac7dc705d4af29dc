import { warn } from '../warn.js';
import type { TracedGrant } from '../diagnostics/traces.js';
import { Hold } from './hold.js';
import type { HoldRecord } from './hold-record.js';
import { countOpen } from './left-holds.js';
import type { Tenure } from './tenure.js';
import { isHandedOff } from './tenure-events.js';
import { checkLease } from '../lease-time.js';
import { quoted } from '../visible.js';

/**
 * Warns when the caller has dropped a hold without a release. The client only warns, because to keep a lock for the
 * life of the process is a legitimate use.
 */
const leaked = new FinalizationRegistry<HoldRecord>((record) => {
  if (record.state !== 'open') return;
  const since = record.site === undefined ? '' : ` taken at ${record.site.toString()}`;
  warn(
    'HOLDFAST_HOLD_LEAKED',
    `the hold of lock ${quoted(record.protocol.name)}${since} was dropped without a release, so no code can release it. ` +
      'The client renews it until close(). Keep the Hold and call its release() in a finally block.',
  );
});

/** Starts at the first renewal: to watch every short section would cost more than the rest of its bookkeeping. */
export function watchForLeak(record: HoldRecord): void {
  if (record.hold === undefined) return;
  leaked.register(record.hold, record);
  record.hold = undefined;
}

/** A hold of one lock under one name. */
export class SingleHold extends Hold {
  readonly #tenure: Tenure;
  readonly #record: HoldRecord;

  /** @internal */
  constructor(tenure: Tenure, record: HoldRecord) {
    super();
    this.#tenure = tenure;
    this.#record = record;
    record.hold = this;
  }

  override get lockName(): string {
    return this.#tenure.protocol.name;
  }

  override get owner(): string {
    return this.#tenure.owner;
  }

  override get signal(): AbortSignal {
    this.#tenure.lease.check();
    return this.#record.signal;
  }

  override validFor(): number {
    if (this.#record.state !== 'open') return 0;
    const { lease, services } = this.#tenure;
    const now = services.clock.now();
    return lease.check(now) === 'valid' ? Math.floor(lease.validFor(now)) : 0;
  }

  override async extend(leaseTime: number): Promise<void> {
    return this.#tenure.lease.extend(this.#record, checkLease(leaseTime));
  }

  /** @internal */
  protected override free(after: number): Promise<void> {
    return this.#tenure.release(this.#record, after);
  }

  /** @internal */
  protected override leave(released: Promise<void>): boolean | Promise<boolean> {
    const tenure = this.#tenure;
    // Another hold of the owner is the one whose release is on its way. This hold may have been lost before.
    if (this.#record.state !== 'releasing') return false;
    tenure.isLeaving = tenure.state === 'releasing' && tenure.lastRequest?.isWritten === true;
    if (tenure.isLeaving) tenure.services.backgroundReleases.add(tenure.protocol.key, released);
    return tenure.isLeaving && (tenure.lastRequest?.whenFlushed() ?? false);
  }

  /** @internal As a member of several locks: see {@link Hold.leave}. */
  leaveAsMember(released: Promise<void>): boolean | Promise<boolean> {
    return this.leave(released);
  }

  /** @internal */
  override get grant(): Required<TracedGrant> {
    const { owner, holds } = this.#tenure;
    return { owner, holdCount: countOpen(holds), handedOff: isHandedOff(this.#tenure, this.#record) };
  }

  /** @internal */
  override get open(): boolean {
    return this.#record.aroundItsFlow;
  }

  /** @internal */
  override releaseByUnlock(): Promise<void> {
    return this.#record.compensation ?? this.release();
  }

  /** @internal */
  static recordOf(hold: SingleHold): HoldRecord {
    return hold.#record;
  }

  /** @internal */
  static tenureOf(hold: SingleHold): Tenure {
    return hold.#tenure;
  }
}

/** Creates the {@link Hold} that the caller gets for an open record. */
export type MakeHold = (tenure: Tenure, record: HoldRecord) => SingleHold;

export const singleHold: MakeHold = (tenure, record) => new SingleHold(tenure, record);
