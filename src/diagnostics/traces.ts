/*
 * Publishes to the tracing channels. Callers check `isTraced()` first, so that nothing is built without subscribers. A
 * channel runs its subscribers at once and rethrows their errors later, so a subscriber cannot disturb a call.
 */
import { afterChange } from '../after-change.js';
import { ClientClosedError, LockLostError, UnknownPermitError, type LossReason } from '../errors.js';
import { callerContext } from '../redis/connections/detached.js';
import { acquireChannel, holdChannel, type AcquireMessage, type HoldMessage } from './channels.js';
import { missOf, type Settle, type TracedSubject } from './reports.js';

/** The fields of a grant in the messages. */
export type TracedGrant = Pick<AcquireMessage, 'owner' | 'holdCount' | 'handedOff'>;

/** Whether a tracing channel has subscribers. */
export const isTraced = (): boolean => acquireChannel.hasSubscribers || holdChannel.hasSubscribers;

/**
 * Runs `take` as one traced acquisition. `grantOf` describes a grant. `opened` runs in the async context of the caller
 * before the caller gets the hold.
 */
export function traceAcquire<H>(
  message: AcquireMessage,
  settle: Settle<H>,
  grantOf: (hold: H) => TracedGrant,
  take: (settle: Settle<H>) => void,
  opened?: (hold: H) => void,
): void {
  const { start, end, asyncStart, asyncEnd, error: failure } = acquireChannel;
  const inCaller = callerContext();
  const askedAt = performance.now();
  const ended = (settled: () => void): void => {
    message.waited = performance.now() - askedAt;
    asyncStart.publish(message);
    settled();
    asyncEnd.publish(message);
  };
  const traced: Settle<H> = {
    granted: (hold) => {
      const grant = grantOf(hold);
      afterChange(() => {
        Object.assign(message, grant, { outcome: 'granted' });
        ended(() => {
          if (opened !== undefined) (inCaller ?? run)(() => opened(hold));
          settle.granted(hold);
        });
      });
    },
    failed: (error) =>
      afterChange(() => {
        message.outcome = missOf(error);
        message.error = error;
        // A busy lock is an outcome of the call and no error.
        if (message.outcome !== 'busy') failure.publish(message);
        ended(() => settle.failed(error));
      }),
  };
  try {
    start.runStores(message, () => take(traced));
  } finally {
    end.publish(message);
  }
}

const run = <T>(fn: () => T): T => fn();

/** Why a hold or its permits were lost. `undefined`: the error shows no loss. */
function lossOf(error: unknown): LossReason | undefined {
  if (error instanceof LockLostError) return error.reason;
  return error instanceof UnknownPermitError ? 'gone' : undefined;
}

/** One hold, from the grant to its end. */
export class HoldTrace {
  readonly #message: HoldMessage;
  readonly #openedAt = performance.now();
  #released: Promise<void> | undefined;

  constructor(subject: TracedSubject, grant: Pick<HoldMessage, 'owner' | 'holdCount' | 'permits'>) {
    this.#message = { ...subject, ...grant };
  }

  /** Begins a hold whose section is not a function, so no code runs in the stores of the channel. */
  begin(): void {
    this.run(() => undefined);
  }

  /** Begins the hold and runs its section in the stores of the channel. */
  run<T>(body: () => T): T {
    const { start, end } = holdChannel;
    const message = this.#message;
    try {
      return start.runStores(message, () => (message.run === undefined ? body() : message.run(body)));
    } finally {
      end.publish(message);
    }
  }

  /** Ends the trace when the release settles. Returns a promise that settles like the release. */
  releasing(released: Promise<void>): Promise<void> {
    // A handler beside the promise of the caller would hide an unhandled rejection.
    this.#released ??= released.then(
      () => this.#end('released'),
      (error: unknown) => {
        this.failed(error);
        throw error;
      },
    );
    return this.#released;
  }

  /** The hold was lost, the client was closed, or the release failed. */
  failed(error: unknown): void {
    const reason = lossOf(error);
    if (reason === undefined) return this.#end(error instanceof ClientClosedError ? 'closed' : 'releaseFailed', error);
    this.#message.lostReason ??= reason;
    this.#end('lost', error);
  }

  #end(end: NonNullable<HoldMessage['end']>, error?: unknown): void {
    const message = this.#message;
    // The release of a lost hold rejects after the loss.
    if (message.end !== undefined) return;
    message.end = end;
    message.held = performance.now() - this.#openedAt;
    const { asyncStart, asyncEnd, error: failure } = holdChannel;
    if (error !== undefined) {
      message.error = error;
      failure.publish(message);
    }
    asyncStart.publish(message);
    asyncEnd.publish(message);
  }
}
