import type { ServerResponse } from 'node:http';
import type { ServerEvents } from '../contract/messages.js';

/** Time, in ms, after which a page that does not read its events is disconnected. */
const MAX_BLOCKED_MS = 30_000;
/** Time without an event, in ms, after which a comment keeps proxies from closing the connection. */
const QUIET_MS = 15_000;

/**
 * Server-sent events on one response. Nothing is queued: a caller that finds the stream blocked sends nothing, and later
 * sends the difference to what the page has.
 */
export class EventStream {
  #blockedSince: number | undefined;
  #sentAt = performance.now();
  readonly #onDrain = (): void => void (this.#blockedSince = undefined);

  constructor(
    private readonly response: ServerResponse,
    private readonly quietMs = QUIET_MS,
  ) {
    response.on('drain', this.#onDrain);
    // Without a line the browser would not know that the stream is open.
    this.#write(': holdfast\n\n');
  }

  get isBlocked(): boolean {
    return this.#blockedSince !== undefined;
  }

  /** Whether the page has not read its events for so long that it gets no more. */
  get isStuck(): boolean {
    return this.#blockedSince !== undefined && performance.now() - this.#blockedSince > MAX_BLOCKED_MS;
  }

  send<Name extends keyof ServerEvents>(name: Name, payload: ServerEvents[Name]): void {
    this.sendJson(name, JSON.stringify(payload));
  }

  /** `json`: the payload. */
  sendJson(name: keyof ServerEvents, json: string): void {
    this.#write(`event: ${name}\ndata: ${json}\n\n`);
  }

  /** Called from time to time. */
  keepAlive(): void {
    if (!this.isBlocked && performance.now() - this.#sentAt > this.quietMs) this.#write(':\n\n');
  }

  end(reason: ServerEvents['bye']['reason']): void {
    if (reason === 'slow' || this.isBlocked) {
      // A last event would stand behind those that the page does not read.
      this.response.destroy();
      return;
    }
    this.send('bye', { reason });
    this.response.end();
  }

  #write(text: string): void {
    if (this.response.destroyed || this.response.writableEnded) return;
    this.#sentAt = performance.now();
    if (!this.response.write(text)) this.#blockedSince ??= performance.now();
  }
}
