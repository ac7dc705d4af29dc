/** The part of a response that shows its end. Responses of `node:http` and `node:http2` have it. */
export interface ClosableResponse {
  once(event: 'finish' | 'close', listener: () => void): this;
  off(event: 'finish' | 'close', listener: () => void): this;
  readonly destroyed?: boolean;
  readonly writableFinished?: boolean;
  /** The stream of `node:http2`, which has no `destroyed` of its own. */
  readonly stream?: { readonly destroyed: boolean };
}

/** The end of a response, after its last byte or because the client disconnected. */
export class ResponseEnd {
  readonly #controller = new AbortController();
  readonly #response: ClosableResponse;
  readonly #ended = (): void => this.#controller.abort();

  constructor(response: ClosableResponse) {
    this.#response = response;
    if (isOver(response)) this.#ended();
    // A response that a test injects has no connection, and need not emit `close`.
    response.once('finish', this.#ended).once('close', this.#ended);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Resolves when the response has ended. */
  reached(): Promise<void> {
    const { signal } = this;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Removes the listeners from the response. */
  forget(): void {
    this.#response.off('finish', this.#ended).off('close', this.#ended);
  }
}

const isOver = ({ destroyed, writableFinished, stream }: ClosableResponse): boolean =>
  destroyed === true || writableFinished === true || stream?.destroyed === true;
