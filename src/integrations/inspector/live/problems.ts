import { RedisUnavailableError } from '../../../index.js';
import type { Problem } from '../contract/messages.js';
import { cut } from './named.js';

/** What does not work at the moment. */
export class Problems {
  readonly #problems = new Map<Problem['what'], Problem>();
  /** Changes with every change. */
  version = 0;

  get list(): readonly Problem[] {
    return [...this.#problems.values()];
  }

  failed(what: Problem['what'], error: unknown): void {
    const message = cut(error instanceof Error ? error.message : String(error));
    const before = this.#problems.get(what);
    if (before?.message === message) return;
    const isOutage = error instanceof RedisUnavailableError;
    this.#problems.set(what, { what, since: before?.since ?? Date.now(), message, isOutage });
    this.version += 1;
  }

  worked(what: Problem['what']): void {
    if (this.#problems.delete(what)) this.version += 1;
  }
}
