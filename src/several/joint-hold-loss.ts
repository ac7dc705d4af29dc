import { LockLostError } from '../errors.js';
import { LossSignal, type HoldRecord } from '../holding/hold-record.js';
import type { Tenure } from '../holding/tenure.js';

/**
 * Whether a hold of several locks is lost. The records of its parts refer to this object, and this object does not
 * refer to the {@link Hold}. So the garbage collector can free a {@link Hold} that the caller has dropped, and the
 * client warns of the leak.
 */
export class MultiHoldLoss extends LossSignal {
  readonly records: HoldRecord[] = [];
  /** The tenure of each record, in the order of `records`. */
  readonly tenures: Tenure[] = [];
  /** Whether the release of the hold has begun. From then on the release reports the losses. */
  over = false;

  constructor(
    private readonly lockName: string,
    private readonly quorum: number,
  ) {
    super();
  }

  get owner(): string {
    return [...new Set(this.tenures.map(({ owner }) => owner))].join(', ');
  }

  joined(tenure: Tenure, record: HoldRecord): void {
    this.tenures.push(tenure);
    this.records.push(record);
    record.jointHold = this;
  }

  /** Checks the deadline of every part. If fewer parts than the quorum are left, the hold is lost. */
  check(): void {
    if (this.loss !== undefined || this.over) return;
    for (let i = 0; i < this.records.length; i += 1) {
      if (this.records[i]?.state === 'open') this.tenures[i]?.lease.check();
    }
    let left = 0;
    for (const { state } of this.records) if (state === 'open') left += 1;
    if (this.#isLost || left >= this.quorum) return;
    // Report a lost lock before a closed client: the part of a closed client may have stayed valid for a while.
    const losses = this.records.flatMap(({ loss }) => loss ?? []);
    const first = losses.find((loss) => loss instanceof LockLostError) ?? losses[0];
    if (first === undefined) return;
    this.loss =
      first instanceof LockLostError
        ? new LockLostError(this.lockName, this.owner, first.reason, { cause: first })
        : first;
    this.abort();
  }

  /** The release has found that the hold was lost. */
  lostAtRelease(error: LockLostError): void {
    this.loss ??= error;
    this.abort();
  }

  /** `loss` is set when the check of a part above has reported a loss and has called `check()` again. */
  get #isLost(): boolean {
    return this.loss !== undefined;
  }
}
