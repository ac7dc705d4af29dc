import type { Socket } from 'node:net';

/** Something that holds a parcel back, and with it all that was sent after it: a stream keeps its order. */
export interface Gate {
  /** Time by performance.now(). Infinity: until the queue is opened, and then 0. */
  readonly opensAt: number;
}

export interface Parcel {
  readonly bytes: Buffer;
  readonly gates: readonly Gate[];
  readonly onDelivered?: () => void;
}

const SLICE_MS = 10;

/** One direction of a proxied connection: data that was read from one socket and not yet written to the other. */
export class DeliveryQueue {
  readonly #parcels: Parcel[] = [];
  #timer: NodeJS.Timeout | undefined;
  #freeAt = 0;
  #endAfter = false;
  #ended = false;

  constructor(
    private readonly sink: Socket,
    private readonly stalled: () => boolean,
    private readonly bytesPerSecond: () => number,
    /** Whether the end of the stream may follow now that all is delivered. */
    private readonly mayEnd: () => boolean,
  ) {}

  get length(): number {
    return this.#parcels.length;
  }

  push(parcel: Parcel): void {
    this.#parcels.push(parcel);
    this.drain();
  }

  /** Ends the stream once everything before has been delivered. */
  end(): void {
    this.#endAfter = true;
    this.drain();
  }

  /** Drops the data that is still queued. */
  discard(): void {
    this.#parcels.length = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  drain(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let head = this.#parcels[0]; head !== undefined; head = this.#parcels[0]) {
      if (this.sink.destroyed) return this.discard();
      if (this.stalled()) return;
      const wait = Math.max(this.#freeAt, ...head.gates.map((gate) => gate.opensAt)) - performance.now();
      if (wait > 0) {
        if (Number.isFinite(wait)) this.#timer = setTimeout(() => this.drain(), Math.ceil(wait));
        return;
      }
      this.#deliver(head);
    }
    if (this.#endAfter && !this.#ended && !this.stalled() && this.mayEnd()) {
      this.#ended = true;
      this.sink.end();
    }
  }

  #deliver(head: Parcel): void {
    const rate = this.bytesPerSecond();
    const slice = Math.max(1, Math.floor((rate * SLICE_MS) / 1000));
    if (head.bytes.length > slice) {
      this.sink.write(head.bytes.subarray(0, slice));
      this.#parcels[0] = { ...head, bytes: head.bytes.subarray(slice) };
    } else {
      this.#parcels.shift();
      if (this.sink.writable) {
        this.sink.write(head.bytes);
        head.onDelivered?.();
      }
    }
    const spent = Math.min(slice, head.bytes.length);
    if (Number.isFinite(rate)) this.#freeAt = performance.now() + (spent / rate) * 1000;
  }
}
