/*
 * Releases whose callers wait only until the request has been written. The next call of the client on the same lock is
 * ordered behind such a release: its try follows on the same connection, or it is sent when Redis has answered.
 */

/** The pending background releases of one client, by key of the lock. */
export class BackgroundReleases {
  /** Each promise resolves when its release and all releases before it have settled. */
  readonly #newest = new Map<string, Promise<void>>();

  /** `released`: the outcome of the release, which its caller does not wait for. */
  add(key: string, released: Promise<void>): void {
    const settled = released.catch(() => undefined);
    const before = this.#newest.get(key);
    // One link for each release: a call behind thousands of releases waits for one promise.
    const all: Promise<void> = (before === undefined ? settled : before.then(() => settled)).then(() => {
      if (this.#newest.get(key) === all) this.#newest.delete(key);
    });
    this.#newest.set(key, all);
  }

  /** Resolves when the releases of this lock that are pending now have settled. `undefined`: none is pending. */
  of(key: string): Promise<void> | undefined {
    return this.#newest.get(key);
  }
}
