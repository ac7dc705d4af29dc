import { InvalidArgumentError } from '../errors.js';
import { refuseUnknown } from '../options.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import type { ReleaseReply } from '../redis/scripts/lock.js';
import * as scripts from '../redis/scripts/spin-lock.js';
import type { ContextOptions } from './arguments.js';
import { PlainLockProtocol, type ProtocolPort } from '../protocols/plain-lock-protocol.js';

/** How long a waiter of a spin lock pauses between tries. All values are ms. */
export type BackOff =
  | {
      /** The same pause every time. */
      readonly delay: number;
    }
  | {
      /** The first pause. Default 1. */
      readonly initialDelay?: number | undefined;
      /** No pause is longer. Default 128. */
      readonly maxDelay?: number | undefined;
      /** Each pause is this many times the one before, plus up to 1 ms at random for each try that failed. Default 2. */
      readonly multiplier?: number | undefined;
    };

/** Options of a spin lock's handle. */
export interface SpinLockOptions extends ContextOptions {
  /** Default: exponential, from 1 to 128 ms. @see Redisson `LockOptions.BackOff` */
  backOff?: BackOff | undefined;
}

/** The pause after so many tries that failed, given the one before. */
export type Pauses = (before: number, failures: number) => number;

/**
 * Redisson's RSpinLock: the plain lock's key and values without its channel. Who waits asks again and again, and a
 * release tells nobody.
 */
export class SpinLockProtocol extends PlainLockProtocol {
  override readonly handsOff = false;
  readonly polls: Pauses;

  constructor(port: ProtocolPort, name: string, pauses: Pauses) {
    super(port, name);
    this.polls = pauses;
  }

  override release(owners: readonly string[]): ScriptRequest<ReleaseReply> {
    return this.port.executor.run(scripts.release, [this.key], [...owners]);
  }
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
