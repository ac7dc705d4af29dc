import { hostname } from 'node:os';
import type { LockClient } from '../../../index.js';
import type { Bye, Hello, ProcessView } from '../contract/messages.js';
import { warn } from './warn.js';
import type { EventStream } from './event-stream.js';
import { Page } from './page.js';
import { Session } from './session.js';
import { SharedPayloads } from './shared-payloads.js';
import type { PageView } from './view.js';

/** Number of pages that one inspector serves at a time. */
export const MAX_PAGES = 20;
const UPDATE_EVERY_MS = 250;
/** Updates of pages take at most this long, in ms, before the event loop continues. One update may take longer. */
const TURN_MS = 10;
/** For each ms that updates take, the pages wait so long, in ms. */
const REST_PER_MS = 9;
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
  /** The pages that the present round of updates has not reached. */
  readonly #due = new Set<Page>();
  #updates: NodeJS.Timeout | undefined;
  #questions: NodeJS.Timeout | undefined;

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
    this.#tryUpdate(page);
    return () => this.#remove(page);
  }

  /** The whole name with an id that an open page shows. */
  nameOf(id: string): string | undefined {
    return this.#live?.session.nameOf(id);
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
    this.#updates = setTimeout(() => this.#update(live), UPDATE_EVERY_MS);
    this.#questions = setInterval(() => void this.#authorizeAgain(), this.authorizeEveryMs);
    return live;
  }

  #newLive(): Live {
    const views = (): PageView[] => [...this.#pages].map(({ view }) => view);
    const session = new Session(this.client, this.process, views, () => this.close('client closed'), this.maxNames);
    return { session, payloads: new SharedPayloads(this.client, session) };
  }

  #stop(): void {
    clearTimeout(this.#updates);
    clearInterval(this.#questions);
    this.#due.clear();
    const live = this.#live;
    this.#live = undefined;
    if (live === undefined) return;
    live.session.stop();
    this.#kept = { live: new WeakRef(live), at: performance.now() };
  }

  /** Updates the pages, or some of them, and sets the timer for the others. Updates take at most a tenth of the time. */
  #update(live: Live): void {
    if (live.session.overview.isClosed) return this.close('client closed');
    const startedAt = performance.now();
    const passed = (): number => performance.now() - startedAt;
    if (this.#due.size === 0) for (const page of this.#pages) this.#due.add(page);
    for (const page of this.#due) {
      this.#due.delete(page);
      if (page.stream.isStuck) this.#end(page, 'slow');
      else this.#tryUpdate(page);
      if (passed() > TURN_MS) break;
    }
    if (this.#live !== live) return;
    const rest = Math.max(passed() * REST_PER_MS, this.#due.size === 0 ? UPDATE_EVERY_MS : 0);
    this.#updates = setTimeout(() => this.#update(live), rest);
  }

  /** An update that fails ends its page, and nothing else. */
  #tryUpdate(page: Page): void {
    try {
      const { session, payloads } = (this.#live ??= this.#start());
      page.update(session, payloads);
    } catch (error) {
      warn('the inspector failed to update a page', error);
      this.#end(page, 'failed');
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
    if (this.#remove(page)) page.stream.end(reason);
  }

  /** Returns `false` if the page was no longer open. */
  #remove(page: Page): boolean {
    if (!this.#pages.delete(page)) return false;
    this.#asking.delete(page);
    this.#due.delete(page);
    if (this.#pages.size === 0) this.#stop();
    return true;
  }
}

function notAllowed(error: unknown): false {
  warn('authorize() failed for an open page of the inspector', error);
  return false;
}
