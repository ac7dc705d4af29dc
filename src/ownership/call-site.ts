/** The first frame is the caller, unless a function of Node.js made the call, such as `AsyncLocalStorage.run()`. */
const FRAMES = 2;

/** A place in the caller's code. The stack becomes text only when a message needs it, because formatting it is slow. */
export class CallSite {
  /** Set by `Error.captureStackTrace()`. An `Error.prepareStackTrace` of the application decides what it is. */
  declare private readonly stack?: unknown;

  private constructor() {
    // `capture()` creates the call sites.
  }

  /** `above`: the function of this package that the caller called. The captured stack begins with its caller. */
  static capture(above: (...args: never[]) => unknown): CallSite {
    const site = new CallSite();
    const limit = Error.stackTraceLimit;
    try {
      Error.stackTraceLimit = FRAMES;
      try {
        Error.captureStackTrace(site, above);
      } finally {
        Error.stackTraceLimit = limit;
      }
    } catch {
      // A frozen `Error`, for example. The place stays unknown: it only serves messages, and no call fails for it.
    }
    return site;
  }

  /** The stack as text, if the application does not make something else of it. */
  get #text(): string {
    try {
      const { stack } = this;
      if (Array.isArray(stack)) return ['', ...stack.map((frame) => `    at ${String(frame)}`)].join('\n');
      return typeof stack === 'string' ? stack : '';
    } catch {
      return '';
    }
  }

  toString(): string {
    const frames = this.#text.split('\n').slice(1);
    const frame = frames.find((line) => !line.includes('(node:') && !line.includes('at node:')) ?? '';
    const named = /^\s*at (?:async )?(?:(.+?) \()?(.*?)\)?$/.exec(frame);
    if (named === null) return 'an unknown place';
    const place = (named[2] ?? '')
      .replace(/^file:\/\//, '')
      .replace(/^.*[\\/]/, '')
      .replace(/:\d+$/, '');
    return named[1] === undefined ? place : `${named[1]} (${place})`;
  }
}
