/*
 * Everything that replaces internals of ioredis for speed, behind the interface of transport.ts: the promises of a
 * command, its encoding, and one system call for each command. Without this file a section costs 17 % more CPU time
 * (user and system) in one flow, and 19 % more in 100 flows: medians of 20 runs of each build, in turns, Node.js 20.
 *
 * `npm run suite -- plain-transport` runs the tests without this file: tests/jest.config.mjs puts a plain transport in its
 * place.
 */
import { Command, Redis } from 'ioredis';
import type { Attempt } from './attempt.js';
import { isObserved } from './observed.js';
import { PlainTransport, type Answers } from './transport.js';

/** Largest number of commands in one system call. */
const MAX_CORKED = 16;

const NONE: string[] = [];

export class QuickTransport extends PlainTransport {
  readonly #redis: Redis;
  /** Another copy of ioredis may need members of a command that this copy's class does not have. */
  readonly #isOfThisCopy: boolean;
  /** Number of commands written since the socket was corked; 0 while it is not corked. */
  #corked = 0;
  /** The last turn that corked the socket wrote more than one command. */
  #crowded = false;

  constructor(redis: Redis) {
    super(redis);
    this.#redis = redis;
    this.#isOfThisCopy = redis instanceof Redis;
  }

  override write(name: string, args: string[], answers: Answers<Attempt>, attempt: Attempt): void {
    if (!this.#isOfThisCopy || isObserved(this.#redis)) return super.write(name, args, answers, attempt);
    this.#redis.sendCommand(new AnsweredCommand(name, args, answers, attempt));
  }

  /**
   * Under load, the commands of one turn share system calls. Each call carries at most MAX_CORKED commands, so that the
   * server can begin while the client still writes. Without load, a command is written at once.
   *
   * Pending attempts are a sign of load. So is a last turn with more than one command: if one read brings all replies,
   * no attempt is pending when the callers send their next commands.
   */
  override begin(pending: number): void {
    if (this.#corked > 0) {
      this.#corked += 1;
      if (this.#corked % MAX_CORKED !== 0) return;
      this.#redis.stream.uncork();
      this.#redis.stream.cork();
    } else if (pending > 0 || this.#crowded) {
      const { stream } = this.#redis;
      this.#corked = 1;
      stream.cork();
      process.nextTick(() => {
        this.#crowded = this.#corked > 1;
        this.#corked = 0;
        stream.uncork();
      });
    }
  }
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
