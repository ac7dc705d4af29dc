import { Command, Redis } from 'ioredis';

const NONE: string[] = [];

/** Receives the replies to the commands of a connection, each with its attempt. */
export interface Answers<Attempt> {
  answered(attempt: Attempt, raw: unknown): void;
  failed(attempt: Attempt, error: Error): void;
}

/**
 * A command that passes its reply to the connection instead of a promise. An uncontended section sends two commands.
 * The promises that ioredis creates for each command would cost more than all bookkeeping of this package.
 */
export class AnsweredCommand<Attempt> extends Command {
  constructor(name: string, args: string[], answers: Answers<Attempt>, attempt: Attempt) {
    // Set `args` directly: the base class would flatten the list, which costs as much as the rest of its constructor.
    super(name, NONE);
    this.args = args;
    // Use arrow functions: ioredis calls these as methods, but other code that gets the command may call them unbound.
    const answered = (raw: unknown): void => answers.answered(attempt, withText(raw));
    const failed = (error: Error): void => answers.failed(attempt, error);
    this.resolve = answered;
    this.reject = failed;
    // Prevents tracing by ioredis, which would wait for the promise to measure the duration of the command.
    this.isTraced = true;
  }

  /** Encodes as the base class does, but supports only text arguments and concatenates half as many strings. */
  override toWritable(): string {
    const commandArgs = this.args as string[];
    const byAddress = this.name === 'evalsha';
    const beginning = byAddress ? beginningWith(commandArgs[0] as string) : withLength(this.name);
    let text = `*${commandArgs.length + 1}${beginning}`;
    for (let i = byAddress ? 1 : 0; i < commandArgs.length; i += 1) text += withLength(commandArgs[i] as string);
    return `${text}\r\n`;
  }

  /** Another copy of ioredis may need members of a command that this copy's class does not have. */
  static fits(redis: object): boolean {
    return redis instanceof Redis;
  }
}

// The base class calls this method to create its promise and to convert the arguments to text. These commands need
// neither. If a later ioredis does not call this method, the promise that it creates stays pending and unused.
Object.defineProperty(AnsweredCommand.prototype, 'initPromise', { value: () => undefined });

/** ioredis passes text as buffers. The scripts of this package reply with text or numbers only. */
function withText(raw: unknown): unknown {
  if (typeof raw !== 'object') return raw;
  if (Buffer.isBuffer(raw)) return raw.toString();
  return Array.isArray(raw) ? raw.map(withText) : raw;
}

/** The separator before an argument, by the length of the argument in bytes. */
const BEFORE = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`);

function withLength(word: string): string {
  const length = Buffer.byteLength(word);
  return (BEFORE[length] ?? `\r\n$${length}\r\n`) + word;
}

/** The encoded `EVALSHA <digest>` of each script, which is the same text for every call. */
const beginnings = new Map<string, string>();

function beginningWith(sha: string): string {
  let beginning = beginnings.get(sha);
  if (beginning === undefined) {
    beginning = withLength('evalsha') + withLength(sha);
    beginnings.set(sha, beginning);
  }
  return beginning;
}
