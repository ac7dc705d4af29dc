/* The request that frees a lock, and the errors of all requests. */

/** The body of `POST ./unlock`, as `application/json` of at most 8 kB. */
export interface UnlockRequest {
  /** The whole name of the lock. */
  readonly name?: string;
  /** Instead of `name`: the id of a name that an open page shows. */
  readonly id?: string;
  /** The owner that may lose the lock, as the page showed it. */
  readonly owner: string;
  /** `name` or `id`, as the user has typed it again. */
  readonly confirm: string;
}

export interface UnlockReply {
  /** `false`: this owner no longer has the lock. */
  readonly freed: boolean;
}

export interface ErrorReply {
  readonly error: {
    readonly code:
      | 'forbidden'
      | 'not found'
      | 'method not allowed'
      | 'wrong host'
      | 'cross-site'
      | 'csrf'
      | 'actions off'
      | 'not confirmed'
      | 'invalid'
      | 'too large'
      | 'not JSON'
      | 'too many pages'
      | 'unavailable'
      | 'unknown outcome'
      | 'refused'
      | 'closed'
      | 'internal';
    /** What is wrong and what to do. */
    readonly message: string;
  };
}
