import type { JavaError, Step } from './recording.js';

/* Calls and exceptions of Java, as they were recorded, in our words. */

/** Delay of a JVM between the call and its first command. */
export const callAt = (step: Step): number => step.scripts[0]?.at ?? step.commands[0]?.at ?? step.at;

interface Signature {
  /** Without `Async`. */
  readonly method: string;
  /** In front of the unit, which is always ms. */
  readonly times: readonly number[];
  /** The thread of the call, or the thread in its question. */
  readonly of: string;
}

export function signature({ call: { method, args } }: Step, thread: string): Signature {
  const unit = args.findIndex((arg) => arg === 'MILLISECONDS' || arg === 'SECONDS');
  const ms = args[unit] === 'SECONDS' ? 1_000 : 1;
  const times = unit < 0 ? [] : args.slice(0, unit).map((time) => Number(time) * ms);
  const [named] = args.slice(unit + 1);
  const of = named === undefined ? thread : String(named).replace(/^<(.*)>$/, '$1');
  return { method: method.replace(/Async$/, ''), times, of };
}

/** The counterpart of each exception of Redisson, except deviations. */
const CODES: Record<string, string> = {
  'java.lang.IllegalMonitorStateException': 'ERR_LOCK_NOT_OWNER',
  'java.lang.InterruptedException': 'ERR_LOCK_ABORTED',
  'java.lang.IllegalArgumentException': 'ERR_LOCK_INVALID_ARGUMENT',
};

export function codeOf({ class: name, message, cause }: JavaError): string {
  if (message?.includes('already been released')) return 'ERR_LOCK_UNKNOWN_PERMIT';
  return cause === undefined ? (CODES[message ?? ''] ?? CODES[name] ?? name) : codeOf(cause);
}

/** `PT1.5S`. */
export const durationMs = (text: unknown): number => Number(/^PT([\d.]+)S$/.exec(String(text))?.[1]) * 1_000;
