/** A place in the caller's code. The stack becomes text only when a message needs it, because formatting it is slow. */
export class CallSite {
  private constructor(private readonly holder: { stack?: string }) {}

  /** `above`: the function of this package that the caller called. The captured stack begins with its caller. */
  static capture(above: (...args: never[]) => unknown): CallSite {
    const holder: { stack?: string } = {};
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 4;
    Error.captureStackTrace(holder, above);
    Error.stackTraceLimit = limit;
    return new CallSite(holder);
  }

  toString(): string {
    const frames = (this.holder.stack ?? '').split('\n').slice(1);
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
