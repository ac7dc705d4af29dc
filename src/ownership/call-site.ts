/** Where in the caller's code something happened, made into text only when it is printed. */
export class CallSite {
  private constructor(private readonly holder: { stack?: string }) {}

  /** `above`: the function of ours that the caller called; frames from it downwards are left out. */
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
