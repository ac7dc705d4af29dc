import { hostname } from 'node:os';
import type { LockClient } from '../../../index.js';
import type { Bye, Hello, ProcessView } from '../contract/messages.js';
import type { EventStream } from './event-stream.js';
import { Page } from './page.js';
import { Session } from './session.js';
import { SharedPayloads } from './shared-payloads.js';
import type { PageView } from './view.js';

/** Number of pages that one inspector serves at a time. */
export const MAX_PAGES = 20;
const UPDATE_EVERY_MS = 250;
/** How often an open page asks `authorize` again, in ms: the user may have logged out. */
const AUTHORIZE_EVERY_MS = 30_000;
/** A page that opens within this time, in ms, after the last one has closed continues with what that one showed. */
const KEPT_MS = 10_000;

interface Live {
  readonly session: Session;
  readonly payloads: SharedPayloads;
}

/** The open pages of one inspector. Without a page, it sends no command, and has no timer and no listener. */
export class Hub {
  readonly process: ProcessView;
  readonly #pages = new Set<Page>();
  /** The pages for which `authorize` has not answered the last question yet. */
  readonly #asking = new Set<Page>();
  /** What the last page showed. The garbage collector may free it while no page is open. */
  #kept: { readonly live: WeakRef<Live>; readonly at: number } | undefined;
  #live: Live | undefined;
  #timers: readonly NodeJS.Timeout[] = [];

  constructor(
    private readonly client: LockClient,
    private readonly authorizeEveryMs = AUTHORIZE_EVERY_MS,
    private readonly maxNames?: number,
  ) {
    const { clientName } = client.overview(() => Promise.resolve());
    this.process = { clientName, host: hostname(), pid: process.pid, address: '' };
  }

  get isFull(): boolean {
    return this.#pages.size >= MAX_PAGES;
  }

  /** Shows a view on a stream. Returns a function for the moment in which the stream has closed. */
  open(stream: EventStream, view: PageView, isAllowed: () => Promise<boolean>, hello: Hello): () => void {
    const page = new Page(stream, view, isAllowed, hello);
    this.#pages.add(page);
    const live = (this.#live ??= this.#start());
    page.update(live.session, live.payloads);
    return () => {
      this.#pages.delete(page);
      this.#asking.delete(page);
      if (this.#pages.size === 0) this.#stop();
    };
  }

  /** Ends every stream. */
  close(reason: Bye['reason']): void {
    for (const page of [...this.#pages]) this.#end(page, reason);
  }

  #start(): Live {
    const kept = this.#kept !== undefined && performance.now() - this.#kept.at < KEPT_MS && this.#kept.live.deref();
    const live = kept === false || kept === undefined ? this.#newLive() : kept;
    this.#kept = undefined;
    live.session.start();
    this.#timers = [
      setInterval(() => this.#update(live), UPDATE_EVERY_MS),
      setInterval(() => void this.#authorizeAgain(), this.authorizeEveryMs),
    ];
    return live;
  }

  #newLive(): Live {
    const views = (): PageView[] => [...this.#pages].map(({ view }) => view);
    const session = new Session(this.client, this.process, views, () => this.close('client closed'), this.maxNames);
    return { session, payloads: new SharedPayloads(this.client, session) };
  }

  #stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    const live = this.#live;
    this.#live = undefined;
    if (live === undefined) return;
    live.session.stop();
    this.#kept = { live: new WeakRef(live), at: performance.now() };
  }

  #update({ session, payloads }: Live): void {
    if (session.overview.isClosed) return this.close('client closed');
    for (const page of [...this.#pages]) {
      if (page.stream.isStuck) this.#end(page, 'slow');
      else page.update(session, payloads);
    }
  }

  async #authorizeAgain(): Promise<void> {
    await Promise.all(
      [...this.#pages].map(async (page) => {
        // Without an answer since the last turn, the page may not stay open any longer.
        if (this.#asking.has(page)) return this.#end(page, 'not allowed');
        this.#asking.add(page);
        const isAllowed = await page.isAllowed().catch(notAllowed);
        this.#asking.delete(page);
        if (!isAllowed) this.#end(page, 'not allowed');
      }),
    );
  }

  /** The page leaves `#pages` at once: its response may close later. */
  #end(page: Page, reason: Bye['reason']): void {
    if (!this.#pages.delete(page)) return;
    this.#asking.delete(page);
    page.stream.end(reason);
    if (this.#pages.size === 0) this.#stop();
  }
}

function notAllowed(error: unknown): false {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`authorize() failed for an open page of the inspector: ${reason}`, {
    code: 'HOLDFAST_INSPECTOR',
  });
  return false;
}
