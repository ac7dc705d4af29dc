import { request as openRequest, type IncomingMessage } from 'node:http';
import type { ServerEvents } from '../../../src/integrations/inspector/messages.js';
import { until } from '../time/until.js';

/** One event of a stream. */
interface Received {
  readonly name: string;
  readonly payload: unknown;
}

/** A page of the inspector without a browser: it reads the events and keeps what they say. */
export class OpenPage {
  readonly received: Received[] = [];
  /** The rows that the page shows, by what they show of the name. */
  readonly rows = new Map<string, ServerEvents['rows']['changed'][number]>();
  isEnded = false;
  #text = '';

  private constructor(
    private readonly base: string,
    private readonly headers: Readonly<Record<string, string>>,
    private readonly request: ReturnType<typeof openRequest>,
    readonly response: IncomingMessage,
  ) {
    response.setEncoding('utf8');
    response.on('data', (part: string) => this.#read(part));
    response.on('close', () => (this.isEnded = true));
    response.on('error', () => undefined);
  }

  /** Opens the events of the inspector at a URL. `query`: the view. */
  static async open(base: string, query = '', headers: Record<string, string> = {}): Promise<OpenPage> {
    const sent = openRequest(`${base}/events${query}`, { agent: false, headers });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve);
      sent.on('error', reject);
      sent.end();
    });
    sent.on('error', () => undefined);
    return new OpenPage(base, headers, sent, response);
  }

  /** The last payload of an event. */
  last<Name extends keyof ServerEvents>(name: Name): ServerEvents[Name] | undefined {
    return this.received.findLast((event) => event.name === name)?.payload as ServerEvents[Name] | undefined;
  }

  all<Name extends keyof ServerEvents>(name: Name): ServerEvents[Name][] {
    return this.received.filter((event) => event.name === name).map(({ payload }) => payload as ServerEvents[Name]);
  }

  /** Waits until the page shows what the caller looks for. */
  async shows(fact: (page: OpenPage) => boolean, what: string, limitMs?: number): Promise<void> {
    await until(() => fact(this), what, limitMs);
  }

  /** Frees a lock as the page does after the user has typed its name or id. Resolves with the status and the reply. */
  async unlock(lock: string | { readonly id: string }, owner: string): Promise<[status: number, reply: unknown]> {
    const typed = typeof lock === 'string' ? { name: lock } : { id: lock.id };
    const body = { ...typed, owner, confirm: typed.name ?? typed.id };
    const reply = await fetch(`${this.base}/unlock`, {
      method: 'POST',
      headers: {
        ...this.headers,
        'content-type': 'application/json',
        'holdfast-csrf': this.last('hello')?.csrf ?? '',
      },
      body: JSON.stringify(body),
    });
    return [reply.status, await reply.json()];
  }

  close(): void {
    this.request.destroy();
  }

  #read(part: string): void {
    this.#text += part;
    for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
      const [, name, data] = /^event: ([^\n]*)\ndata: ([^\n]*)$/.exec(this.#text.slice(0, end)) ?? [];
      this.#text = this.#text.slice(end + 2);
      if (name !== undefined) this.#note(name as keyof ServerEvents, JSON.parse(data!));
    }
  }

  #note(name: keyof ServerEvents, payload: unknown): void {
    this.received.push({ name, payload });
    if (name !== 'rows') return;
    const { changed, removed } = payload as ServerEvents['rows'];
    for (const row of changed) this.rows.set(row.name, row);
    const gone = new Set(removed);
    for (const [name, { id }] of this.rows) if (gone.has(id)) this.rows.delete(name);
  }
}
