import { Command, Redis } from 'ioredis';

const NONE: string[] = [];

/** Where the answers to a connection's commands go; each is told with the attempt that it answers. */
export interface Answers<Attempt> {
  answered(attempt: Attempt, raw: unknown): void;
  failed(attempt: Attempt, error: Error): void;
}

/**
 * A command whose answer goes to its connection instead of a promise. An uncontended section sends two commands; the
 * promises that ioredis makes for each would cost more than all of our own bookkeeping.
 */
export class AnsweredCommand<Attempt> extends Command {
  constructor(name: string, args: string[], answers: Answers<Attempt>, attempt: Attempt) {
    // The base class would flatten the list, at the price of the rest of its work.
    super(name, NONE);
    this.args = args;
    // ioredis calls them as methods; other code that has got hold of a command may not.
    const answered = (raw: unknown): void => answers.answered(attempt, withText(raw));
    const failed = (error: Error): void => answers.failed(attempt, error);
    this.resolve = answered;
    this.reject = failed;
    // ioredis would wait for the promise to tell its tracing channel how long the command took.
    this.isTraced = true;
  }

  /** What the base class makes of words that are all text, of half the pieces. */
  override toWritable(): string {
    const words = this.args as string[];
    const byAddress = this.name === 'evalsha';
    let text = `*${words.length + 1}${byAddress ? beginningWith(words[0] as string) : withLength(this.name)}`;
    for (let i = byAddress ? 1 : 0; i < words.length; i += 1) text += withLength(words[i] as string);
    return `${text}\r\n`;
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
  if (typeof raw !== 'object') return raw;
  if (Buffer.isBuffer(raw)) return raw.toString();
  return Array.isArray(raw) ? raw.map(withText) : raw;
}

/** What stands between two words, by the length of the second in bytes. */
const BEFORE = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`);

function withLength(word: string): string {
  const length = Buffer.byteLength(word);
  return (BEFORE[length] ?? `\r\n$${length}\r\n`) + word;
}

/** `EVALSHA` and the address: the same text for every call of a script. */
const beginnings = new Map<string, string>();

function beginningWith(sha: string): string {
  let beginning = beginnings.get(sha);
  if (beginning === undefined) {
    beginning = withLength('evalsha') + withLength(sha);
    beginnings.set(sha, beginning);
  }
  return beginning;
}
