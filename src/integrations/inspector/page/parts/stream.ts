import type { Bye, ErrorReply, View } from '../../messages.js';
import type { ServerEvent } from './model.js';
import { sessionSecret } from './session.js';

export type Connection =
  | { readonly kind: 'connecting' | 'live' | 'lost' | 'paused' }
  /** The server has refused or ended the stream. `again`: the page tries again by itself. */
  | { readonly kind: 'ended'; readonly message: string; readonly again: boolean };

export interface StreamListener {
  onEvent(event: ServerEvent): void;
  onConnection(connection: Connection): void;
}

const EVENTS: readonly ServerEvent['name'][] = [
  ...(['hello', 'rows', 'summary', 'selected', 'timeline', 'own', 'waits', 'contended', 'doctor', 'problems'] as const),
  'bye',
];
/** What the page says at the end of a stream, by the reason, and whether it opens another one by itself. */
const BYE: Readonly<Record<Bye['reason'], { readonly message: string; readonly again: boolean }>> = {
  'client closed': { message: 'The client of this page was closed: its process ends.', again: false },
  'server closed': { message: 'The server of this page has ended its connections.', again: true },
  slow: { message: 'The server closed the connection, because this page did not keep up.', again: true },
  failed: { message: 'The server failed to update this page, and has written a warning.', again: false },
  'not allowed': { message: 'You are no longer allowed to see this page. Sign in again.', again: false },
};
const UNKNOWN_END = { message: 'The server has ended the connection.', again: false };
const RETRY_MS = 3_000;
/** A page that is out of sight for this long costs Redis nothing. */
const PAUSE_MS = 60_000;

/** The one connection of the page. A new view needs a new stream. */
export class Stream {
  #source: EventSource | undefined;
  #view: View = {};
  #retry: ReturnType<typeof setTimeout> | undefined;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #state: Connection['kind'] = 'connecting';

  constructor(private readonly listener: StreamListener) {
    document.addEventListener('visibilitychange', () => this.#onVisibility());
  }

  /** Shows a view. The state stays `live` meanwhile: a new view is no loss of the connection. */
  open(view: View = this.#view): void {
    this.#view = view;
    this.#close();
    const source = new EventSource(this.#url());
    this.#source = source;
    for (const name of EVENTS) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => this.#take(name, data));
    }
    source.addEventListener('error', () => this.#onError(source));
  }

  #url(): string {
    const query = new URLSearchParams(Object.entries(this.#view) as [string, string][]);
    const secret = sessionSecret();
    // An `EventSource` sends no header of the page.
    if (secret !== undefined) query.set('session', secret);
    return `events?${query.toString()}`;
  }

  #take(name: ServerEvent['name'], data: string): void {
    const event = { name, payload: JSON.parse(data) as unknown } as ServerEvent;
    if (event.name === 'hello') this.#become({ kind: 'live' });
    this.listener.onEvent(event);
    if (event.name !== 'bye') return;
    const { message, again } = BYE[event.payload.reason] ?? UNKNOWN_END;
    this.#end(message, again);
  }

  #onError(source: EventSource): void {
    if (source !== this.#source) return;
    // The browser connects again by itself, unless the server has refused.
    if (source.readyState === EventSource.CONNECTING) this.#become({ kind: 'lost' });
    else void this.#askWhy();
  }

  /** An `EventSource` does not tell why it was refused. */
  async #askWhy(): Promise<void> {
    this.#close();
    const asked = new AbortController();
    try {
      const response = await fetch(this.#url(), { signal: asked.signal, headers: { accept: 'text/event-stream' } });
      if (response.ok) {
        asked.abort();
        return this.#later({ kind: 'lost' });
      }
      const { error } = (await response.json().catch(() => ({}))) as Partial<ErrorReply>;
      this.#end(error?.message ?? `The server answered with the status ${response.status}.`, response.status >= 500);
    } catch {
      this.#later({ kind: 'lost' });
    }
  }

  #end(message: string, again: boolean): void {
    this.#close();
    const ended: Connection = { kind: 'ended', message, again };
    if (again) this.#later(ended);
    else this.#become(ended);
  }

  #later(state: Connection): void {
    this.#become(state);
    this.#retry = setTimeout(() => this.open(), RETRY_MS);
  }

  #become(state: Connection): void {
    this.#state = state.kind;
    this.listener.onConnection(state);
  }

  #onVisibility(): void {
    clearTimeout(this.#pause);
    if (document.visibilityState === 'visible') {
      if (this.#state === 'paused') this.open();
      return;
    }
    this.#pause = setTimeout(() => {
      if (this.#state === 'ended') return;
      this.#close();
      this.#become({ kind: 'paused' });
    }, PAUSE_MS);
  }

  #close(): void {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = undefined;
  }
}
