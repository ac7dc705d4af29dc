import type { LeaseClock } from '../clock.js';
import type { AcquireMessage } from '../diagnostics/channels.js';
import { subjectOf, type Reports, type TracedSubject } from '../diagnostics/reports.js';
import { isTraced, traceAcquire, type TracedGrant } from '../diagnostics/traces.js';
import type { Compensations } from '../holding/compensations.js';
import { serves } from '../holding/innermost-hold.js';
import type { TenureServices } from '../holding/tenure.js';
import type { Sections } from '../ownership/sections.js';
import type { WaitLines } from '../waiting/wait-lines.js';
import type { Lanes } from './lanes.js';
import type { SharedWaiter } from '../waiting/shared-waiter.js';
import { showAs } from '../summary.js';
import { ClientClosedError, LockAbortedError, LockTimeoutError } from '../errors.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { Lane, OwnerlessProtocol } from '../protocols/ownerless-protocol.js';

/** @internal What the objects without an owner of one client need of it. */
export interface OwnerlessServices {
  readonly clock: LeaseClock;
  readonly reports: Reports;
  readonly options: { readonly commandTimeout: number };
  readonly compensations: Compensations;
  readonly lanes: Lanes;
  readonly lines: WaitLines;
  readonly client: { readonly closed: boolean; readonly draining: boolean };
  readonly tenures: TenureServices;
  readonly sections: Sections;
}

/** @internal What a waiter got. */
export interface Granted<T> {
  readonly value: T;
  readonly handedOff: boolean;
}

const grantOf = ({ handedOff }: Granted<unknown>): TracedGrant => ({ handedOff });

/** @internal Creates a waiter. `handedOff`: a release of this client passed the grant on. */
export type MakeWaiter<T> = (
  granted: (value: T, handedOff?: boolean) => void,
  failed: (error: unknown) => void,
) => SharedWaiter;

/** The options of a call that waits for permits or for a latch. */
export interface WaitOptions {
  /** Aborts the wait. Acquired permits are not affected. */
  signal?: AbortSignal | undefined;
}

/** The options of `acquirePermits`, `tryAcquirePermits` and `withPermits`. */
export interface PermitsOptions extends WaitOptions {
  /**
   * Number of permits. The call acquires all of them or none.
   *
   * @defaultValue 1
   */
  permits?: number | undefined;
  /**
   * Time to wait for the permits, in milliseconds, or `Infinity`.
   *
   * @defaultValue one try for calls whose name begins with `try`; `Infinity` for the others
   */
  waitTime?: number | undefined;
}

/** The options of `acquirePermit`, `tryAcquirePermit` and `withPermit`. */
export interface ExpirablePermitOptions extends PermitsOptions {
  /**
   * Lease of the permits, in milliseconds: an integer of at least 10, or -1 for none. At the end of the lease Redis
   * counts the permits as free again.
   *
   * @defaultValue no lease: the permits stay taken until their release
   */
  leaseTime?: number | undefined;
}

/**
 * The common part of semaphores and latches. Several callers can have their permits at once, and Redis stores no owner.
 */
export abstract class OwnerlessObject {
  /** @internal */
  protected readonly services: OwnerlessServices;
  /** @internal */
  protected readonly protocol: OwnerlessProtocol;
  /**
   * The name of the object, without the key prefix.
   *
   * @redisson `RObject#getName()`
   */
  readonly name: string;

  /** @internal */
  constructor(services: OwnerlessServices, protocol: OwnerlessProtocol) {
    this.services = services;
    this.protocol = protocol;
    this.name = protocol.name;
  }

  /** @internal */
  protected checkOpen(): void {
    if (this.services.client.closed) throw new ClientClosedError();
  }

  /** @internal Queues a waiter until it is granted. Resolves with `undefined` if its time ran out. */
  protected async wait<T>(make: MakeWaiter<T>): Promise<Granted<T> | undefined> {
    const { protocol } = this;
    const { lines, reports } = this.services;
    const askedAt = reports.now();
    try {
      return await new Promise<Granted<T>>((granted, failed) => {
        let settle = reports.acquiring<Granted<T>>(protocol, { askedAt }, { granted, failed });
        const waiter = make(
          (value, handedOff = false) => {
            this.tellGranted(waiter.permits, handedOff, askedAt);
            settle.granted({ value, handedOff });
          },
          (error) => settle.failed(error),
        );
        const acquire = (): void => {
          const { signal } = waiter.limit;
          if (signal?.aborted === true) settle.failed(new LockAbortedError(this.name, signal.reason));
          else if (!serves(this.services, { around: waiter.around, context: undefined }))
            settle.failed(new ClientClosedError());
          else lines.line(protocol.key, protocol.channel).join(waiter);
        };
        if (!isTraced()) return acquire();
        traceAcquire(this.#message(waiter), settle, grantOf, (traced) => {
          settle = traced;
          acquire();
        });
      });
    } catch (error) {
      if (error instanceof LockTimeoutError) return undefined;
      throw error;
    }
  }

  #message({ limit, leaseMs: leaseTime, permits }: SharedWaiter): AcquireMessage {
    const message = { ...this.subject, waitTime: limit.waitTime, leaseTime, nested: false };
    return permits > 0 ? { ...message, permits } : message;
  }

  /** @internal The object, as the diagnostics channels name it. */
  protected get subject(): TracedSubject {
    return subjectOf(this.protocol, this.services.reports.clientId);
  }

  /** @internal Reports the grant of permits (0: of an open latch). `askedAt`: monotonic time, in ms, of the call. */
  protected abstract tellGranted(permits: number, handedOff: boolean, askedAt: number): void;

  /** @internal Sends a change that takes effect at most once. The client cancels a change whose outcome is unknown. */
  protected change<Reply>(send: (lane: Lane) => ScriptRequest<Reply>): Promise<Reply> {
    return this.services.lanes.once(this.protocol.requests, send, (lane) => this.protocol.cancelChange(lane));
  }
}

showAs(OwnerlessObject, ({ name }) => ({ name }));
