import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from '@opentelemetry/api';
import type { AcquireMessage, HoldMessage } from '../../index.js';

/** Bounds of the buckets of both histograms, in seconds. */
const BOUNDS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The metrics of all clients of the process. They never carry a name of a lock: there may be any number of names. */
export class HoldfastMetrics {
  readonly #wait: Histogram;
  readonly #held: Histogram;
  readonly #pending: UpDownCounter;
  readonly #holding: UpDownCounter;
  readonly #timeouts: Counter;
  readonly #handOffs: Counter;
  readonly #lost: Counter;
  readonly #groupOf: (name: string) => string | undefined;

  constructor(meter: Meter, groupOf: (name: string) => string | undefined) {
    this.#groupOf = groupOf;
    const seconds = { unit: 's', advice: { explicitBucketBoundaries: BOUNDS_S } };
    this.#wait = meter.createHistogram('holdfast.acquire.duration', {
      ...seconds,
      description: 'Time from the call to the outcome of an acquisition.',
    });
    this.#held = meter.createHistogram('holdfast.hold.duration', {
      ...seconds,
      description: 'Time from the grant to the end of a hold.',
    });
    this.#pending = meter.createUpDownCounter('holdfast.acquire.pending', {
      unit: '{acquisition}',
      description: 'Acquisitions that have no outcome yet.',
    });
    this.#holding = meter.createUpDownCounter('holdfast.hold.active', {
      unit: '{hold}',
      description: 'Open holds.',
    });
    this.#timeouts = meter.createCounter('holdfast.acquire.timeouts', {
      unit: '{acquisition}',
      description: 'Acquisitions that found the lock busy for their whole wait time.',
    });
    this.#handOffs = meter.createCounter('holdfast.acquire.handoffs', {
      unit: '{acquisition}',
      description: 'Grants that another owner of the same client passed on.',
    });
    this.#lost = meter.createCounter('holdfast.hold.lost', {
      unit: '{hold}',
      description: 'Holds that were lost before their release.',
    });
  }

  acquireStarted(message: AcquireMessage): void {
    this.#pending.add(1, this.#attributes(message));
  }

  /** The acquisition has an outcome, or nothing observes it any more. */
  acquireEnded(message: AcquireMessage): void {
    const attributes = this.#attributes(message);
    this.#pending.add(-1, attributes);
    const { outcome, waited = 0, handedOff } = message;
    if (outcome === undefined) return;
    this.#wait.record(waited / 1_000, { ...attributes, 'holdfast.acquire.outcome': outcome });
    if (outcome === 'busy') this.#timeouts.add(1, attributes);
    if (handedOff === true) this.#handOffs.add(1, attributes);
  }

  holdStarted(message: HoldMessage): void {
    this.#holding.add(1, this.#attributes(message));
  }

  /** The hold has ended, or nothing observes it any more. */
  holdEnded(message: HoldMessage): void {
    const attributes = this.#attributes(message);
    this.#holding.add(-1, attributes);
    const { end, held = 0, lostReason = 'unknown' } = message;
    if (end === undefined) return;
    this.#held.record(held / 1_000, { ...attributes, 'holdfast.hold.end': end });
    if (end === 'lost') this.#lost.add(1, { ...attributes, 'holdfast.hold.lost_reason': lostReason });
  }

  #attributes({ name, group: ownGroup, kind, mode }: AcquireMessage | HoldMessage): Attributes {
    const group = this.#groupOf(name) ?? ownGroup;
    const attributes = { 'holdfast.lock.kind': kind, 'holdfast.lock.mode': mode };
    return group === undefined ? attributes : { ...attributes, 'holdfast.lock.group': group };
  }
}
