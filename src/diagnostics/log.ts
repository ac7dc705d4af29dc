import { debuglog } from 'node:util';
import { InvalidArgumentError } from '../errors.js';
import { FACTS, type EventBus, type Fact, type LockEvents, type LogLevel } from '../events.js';

/** A logger that takes a message first and an object second, as `console`, winston and the logger of Nest do. */
export interface ConsoleLogger {
  error: (...args: never[]) => unknown;
  warn: (...args: never[]) => unknown;
  debug: (...args: never[]) => unknown;
}

/**
 * A logger that takes an object first and a message second, as pino, bunyan and the logger of Fastify do.
 * {@link logTo} recognizes it by the methods `child` and `fatal`.
 */
export interface StructuredLogger extends ConsoleLogger {
  child: (...args: never[]) => unknown;
  fatal: (...args: never[]) => unknown;
}

/** A client, as {@link logTo} uses it. */
export interface LoggedClient {
  readonly id: string;
  readonly events: EventBus;
}

/**
 * Writes the events of a client to a logger: a lost lock as `error`; failed renewals, releases, connections and
 * acquisitions, and forced unlocks, as `warn`; everything else as `debug`. The entry has the fields of the event, with its error as `err`.
 *
 * @returns a function that stops the logging.
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the logger lacks `error`, `warn` or `debug`.
 * @example
 * const stop = logTo(client, pino()); // or console
 */
export function logTo(client: LoggedClient, logger: StructuredLogger | ConsoleLogger): () => void {
  checkLogger(logger);
  const isStructured = 'child' in logger && 'fatal' in logger;
  return listen(client, (level, message, fields) => {
    const args = isStructured ? [fields, message] : [message, fields];
    logger[level](...(args as never[]));
  });
}

/** Writes the events of a client to stderr if the environment variable `NODE_DEBUG` names `holdfast`. */
export function logToNodeDebug(client: LoggedClient): void {
  const log = debuglog('holdfast');
  if (log.enabled) listen(client, (level, message, fields) => log('%s %s %o', level, message, fields));
}

function listen(
  { id, events }: LoggedClient,
  write: (level: LogLevel, message: string, fields: Record<string, unknown>) => void,
): () => void {
  const log = (type: keyof LockEvents): (() => void) => {
    const [, level, message] = FACTS[type] as unknown as Fact<keyof LockEvents>;
    return events.on(type, (event) => {
      const { cause, ...facts } = event as typeof event & { cause?: unknown };
      const fields = { event: type, clientId: id, ...facts };
      write(
        typeof level === 'function' ? level(event) : level,
        `holdfast ${message(event)}`,
        cause === undefined ? fields : { ...fields, err: cause },
      );
    });
  };
  const stops = (Object.keys(FACTS) as (keyof LockEvents)[]).map(log);
  return () => {
    for (const stop of stops) stop();
  };
}

function checkLogger(logger: unknown): void {
  const methods: LogLevel[] = ['error', 'warn', 'debug'];
  const given = logger as Partial<Record<LogLevel, unknown>> | null | undefined;
  if (methods.every((method) => typeof given?.[method] === 'function')) return;
  throw new InvalidArgumentError('logger', 'a logger with the methods error, warn and debug', logger);
}
