import { LockLostError, type ClientClosedError } from '../errors.js';
import { runOutside } from '../ownership/flow.js';
import type { HoldRecord } from '../holding/hold-record.js';
import type { Tenure } from '../holding/tenure.js';

/**
 * Whether a hold of several locks is lost. Its parts tell it, so it knows them and not the hold, which nothing but its
 * users may keep alive: that it is out of their reach is to be noticed.
 */
export class MultiHoldLoss {
  // Not the holds: a record keeps this object, and a hold that the caller has dropped must be noticed.
  readonly records: HoldRecord[] = [];
  /** Of each record, its tenure. */
  readonly tenures: Tenure[] = [];
  error: LockLostError | ClientClosedError | undefined;
  /** It is being given back: from here on that tells what was lost. */
  over = false;
  #controller: AbortController | undefined;

  constructor(
    private readonly lockName: string,
    private readonly quorum: number,
  ) {}

  get owner(): string {
    return [...new Set(this.tenures.map(({ owner }) => owner))].join(', ');
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.error !== undefined) this.#controller.abort(this.error);
    return this.#controller.signal;
  }

  joined(tenure: Tenure, record: HoldRecord): void {
    this.tenures.push(tenure);
    this.records.push(record);
    record.jointHold = this;
  }

  /** Looks at every part's clock; with too few of them left the whole is lost. */
  check(): void {
    if (this.error !== undefined || this.over) return;
    for (let i = 0; i < this.records.length; i += 1) {
      if (this.records[i]?.state === 'open') this.tenures[i]?.lease.check();
    }
    let left = 0;
    for (const { state } of this.records) if (state === 'open') left += 1;
    if (this.#isLost || left >= this.quorum) return;
    // Where a client was closed its part may have gone on for a while; what was lost ends the whole.
    const losses = this.records.flatMap(({ loss }) => loss ?? []);
    const first = losses.find((loss) => loss instanceof LockLostError) ?? losses[0];
    if (first === undefined) return;
    this.error =
      first instanceof LockLostError
        ? new LockLostError(this.lockName, this.owner, first.reason, { cause: first })
        : first;
    this.#abort();
  }

  /** Its release has found it lost. */
  lostAtRelease(error: LockLostError): void {
    this.error ??= error;
    this.#abort();
  }

  #abort(): void {
    const controller = this.#controller;
    if (controller !== undefined) runOutside(() => controller.abort(this.error));
  }

  /** A part that was found lost may have told so meanwhile. */
  get #isLost(): boolean {
    return this.error !== undefined;
  }
}
