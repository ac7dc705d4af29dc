/*
 * Releases whose callers wait only until the request has been written. The next call of the client on the same lock is
 * ordered behind such a release: its try follows on the same connection, or it is sent when Redis has answered.
 */

/** The pending background releases of one client, by key of the lock. */
export class BackgroundReleases {
  readonly #byKey = new Map<string, Set<Promise<void>>>();

  /** `released`: the outcome of the release, which its caller does not wait for. */
  add(key: string, released: Promise<void>): void {
    const pending = this.#byKey.get(key) ?? new Set();
    this.#byKey.set(key, pending);
    const settled: Promise<void> = released
      .catch(() => undefined)
      .then(() => {
        pending.delete(settled);
        if (pending.size === 0) this.#byKey.delete(key);
      });
    pending.add(settled);
  }

  /** Resolves when the releases of this lock that are pending now have settled. `undefined`: none is pending. */
  of(key: string): Promise<unknown> | undefined {
    const pending = this.#byKey.get(key);
    return pending === undefined ? undefined : Promise.all(pending);
  }
}
