import { Command, Redis } from 'ioredis';

const NONE: string[] = [];

/**
 * A command whose answer goes to two functions instead of a promise. An uncontended section sends two commands; the
 * promises that ioredis makes for each would cost more than all of our own bookkeeping.
 */
export class AnsweredCommand extends Command {
  constructor(name: string, args: string[], answered: (raw: unknown) => void, failed: (error: Error) => void) {
    // The base class would flatten the list, at the price of the rest of its work.
    super(name, NONE);
    this.args = args;
    this.resolve = (raw) => answered(withText(raw));
    this.reject = failed;
    // ioredis would wait for the promise to tell its tracing channel how long the command took.
    this.isTraced = true;
  }

  /** Another copy of ioredis may ask more of a command than this one's class has. */
  static fits(redis: object): boolean {
    return redis instanceof Redis;
  }
}

// The base class calls this to make its promise and to turn arguments into text; ours are text, and nobody would
// look at the promise. If it is not called any more one day, its promise stays pending and unseen.
Object.defineProperty(AnsweredCommand.prototype, 'initPromise', { value: () => undefined });

/** Replies come as buffers; every one of ours is text or numbers. */
function withText(raw: unknown): unknown {
  if (Buffer.isBuffer(raw)) return raw.toString();
  return Array.isArray(raw) ? raw.map(withText) : raw;
}
