import type { LeaseClock } from '../clock.js';
import type { EventSource } from '../events.js';
import type { Compensations } from '../holding/compensations.js';
import type { WaitLines } from '../waiting/wait-lines.js';
import type { Lane, Lanes } from './lanes.js';
import type { SharedWaiter } from '../waiting/shared-waiter.js';
import { showAs } from '../summary.js';
import { ClientClosedError, LockAbortedError, LockTimeoutError } from '../errors.js';
import { requestsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as reads from '../redis/scripts/reads.js';
import * as requestScripts from '../redis/scripts/request.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';

/** @internal What the objects without an owner of one client need of it. */
export interface OwnerlessServices {
  readonly clock: LeaseClock;
  readonly events: EventSource;
  readonly options: { readonly commandTimeout: number };
  readonly compensations: Compensations;
  readonly lanes: Lanes;
  readonly lines: WaitLines;
  readonly client: { readonly closed: boolean };
}

/** Options of a call that waits for what nobody owns. */
export interface WaitOptions {
  /** Ends the wait; what was granted is not affected. */
  signal?: AbortSignal | undefined;
}

/** Options of `acquirePermits`, `tryAcquirePermits` and `withPermits`. */
export interface PermitsOptions extends WaitOptions {
  /** Default 1. */
  permits?: number | undefined;
  /** ms to wait. Absent: without limit. */
  waitTime?: number | undefined;
}

/** A name under which there is something that several can have and no owner stands for. */
export abstract class SharedObject {
  /** @internal */
  protected readonly key: string;
  /** @internal */
  protected readonly requests: string;

  /** @internal */
  constructor(
    /** @internal */
    protected readonly services: OwnerlessServices,
    /** @internal */
    protected readonly port: ProtocolPort,
    /**
     * The name that it was asked for by.
     *
     * @redisson `RObject#getName()`
     */
    readonly name: string,
  ) {
    this.key = port.keyPrefix + name;
    this.requests = requestsKey(this.key, port.clientId);
  }

  /** @internal */
  protected checkOpen(): void {
    if (this.services.client.closed) throw new ClientClosedError();
  }

  /** @internal Stands in line at the channel until it has what it waits for; false: not in time. */
  protected async wait<T>(
    channel: string,
    make: (granted: (value: T) => void, failed: (error: unknown) => void) => SharedWaiter,
  ): Promise<{ readonly value: T } | undefined> {
    try {
      const value = await new Promise<T>((granted, failed) => {
        const waiter = make(granted, failed);
        const { signal } = waiter.limit;
        if (signal?.aborted === true) failed(new LockAbortedError(this.name, signal.reason));
        else this.services.lines.line(this.key, channel).acquire(waiter);
      });
      return { value };
    } catch (error) {
      if (error instanceof LockTimeoutError) return undefined;
      throw error;
    }
  }

  /** @internal Done once or never; when nobody can say which, it is kept from being done later. */
  protected change<Reply>(send: (lane: Lane) => ScriptRequest<Reply>): Promise<Reply> {
    return this.services.lanes.once(this.requests, send, ({ number, sequence }) =>
      this.port.executor.run(requestScripts.cancel, [this.requests], [number, sequence]),
    );
  }

  /** @internal */
  protected readCount(): Promise<number> {
    return this.port.executor.ask(reads.getCount, [this.key], []);
  }
}

showAs(SharedObject, ({ name }) => ({ name }));
