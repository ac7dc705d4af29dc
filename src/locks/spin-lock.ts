import { InvalidArgumentError } from '../errors.js';
import { refuseUnknown } from '../options.js';
import type { Pauses } from '../protocols/spin-lock-protocol.js';
import type { ContextOptions } from './arguments.js';

/** The pauses of a spin lock's waiter between two tries. All times are milliseconds. */
export type BackOff =
  | {
      /** A constant pause. Minimum: 1. */
      readonly delay: number;
    }
  | {
      /** The first pause. Minimum: 1. @defaultValue 1 */
      readonly initialDelay?: number | undefined;
      /** The longest pause. Minimum: 1. @defaultValue 128 */
      readonly maxDelay?: number | undefined;
      /** Factor from one pause to the next. Each failed try adds up to 1 ms at random. Minimum: 1. @defaultValue 2 */
      readonly multiplier?: number | undefined;
    };

/** The options of a spin lock's handle. */
export interface SpinLockOptions extends ContextOptions {
  /**
   * The pauses between two tries.
   *
   * @defaultValue exponential, from 1 to 128 ms
   *
   * @redisson `LockOptions.BackOff`
   */
  backOff?: BackOff | undefined;
}

export function pausesOf(backOff: unknown): Pauses {
  if (backOff !== undefined && (typeof backOff !== 'object' || backOff === null)) {
    throw new InvalidArgumentError(
      'backOff',
      'an object with delay, or with initialDelay, maxDelay and multiplier',
      backOff,
    );
  }
  refuseUnknown('backOff', backOff ?? {}, ['delay', 'initialDelay', 'maxDelay', 'multiplier']);
  const given = (backOff ?? {}) as {
    delay?: unknown;
    initialDelay?: unknown;
    maxDelay?: unknown;
    multiplier?: unknown;
  };
  if (given.delay !== undefined) {
    const delay = atLeastOne('delay', given.delay);
    return () => delay;
  }
  const first = atLeastOne('initialDelay', given.initialDelay ?? 1);
  const longest = atLeastOne('maxDelay', given.maxDelay ?? 128);
  const multiplier = atLeastOne('multiplier', given.multiplier ?? 2);
  return (before, failures) => {
    if (before === 0) return Math.min(first, longest);
    return Math.min(before * multiplier + Math.floor(Math.random() * failures), longest);
  };
}

function atLeastOne(argument: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 1) return value;
  throw new InvalidArgumentError(`backOff.${argument}`, 'a number of at least 1', value);
}
