import { boundRejection } from '../ownership/bound-promise.js';
import type { FencedLockProtocol } from '../protocols/fenced-lock-protocol.js';
import { SingleHold, type MakeHold } from '../holding/single-hold.js';
import { InvalidArgumentError } from '../errors.js';
import * as reads from '../redis/scripts/reads.js';
import type { ContextOptions, LockOptions, TryLockOptions } from './arguments.js';
import type { TokenSource } from '../redis/scripts/fenced-lock.js';
import type { CallOptions, GrantedValue } from './lock-call.js';
import { SingleLock } from './single-lock.js';

/** The options of a fenced lock's handle. */
export interface FencedLockOptions extends ContextOptions {
  /**
   * How the lock draws its tokens.
   * - `'counter'`: 1, 2, 3 and so on, as in Redisson. A failover that loses the last writes can issue a token twice.
   * - `'clock'`: at least the server's time in microseconds. No token repeats if the clocks of the servers differ by
   *   less than the duration of a failover. Redisson continues to count from such a token.
   *
   * @defaultValue `'counter'`
   */
  tokens?: TokenSource | undefined;
}

/** A hold of a fenced lock. */
export class FencedHold extends SingleHold {
  /**
   * The fencing token of this hold. Every later token is larger. A resource that remembers the largest token it has
   * seen can reject a holder that has lost the lock and not noticed.
   *
   * @redisson `RFencedLock#lockAndGetToken()` returns it
   */
  get token(): bigint {
    return SingleHold.recordOf(this).token as bigint;
  }
}

const fencedHold: MakeHold = (tenure, record) => new FencedHold(tenure, record);

/**
 * A lock whose holds carry fencing tokens. The token of each hold is larger than all earlier tokens. Pass the token
 * with each write to the protected resource. A resource that rejects a token smaller than one it has seen is safe from
 * a holder that has lost the lock and not noticed. Everything else is as in {@link Lock}.
 *
 * @redisson `RFencedLock`
 */
export class FencedLock extends SingleLock<FencedHold> {
  /** @internal */
  declare readonly protocol: FencedLockProtocol;

  /** @internal */
  protected override get makeHold(): MakeHold {
    return fencedHold;
  }

  /**
   * Acquires the lock like {@link Lock.lock}, and resolves with the token of the hold.
   *
   * @throws the errors of {@link Lock.lock}.
   * @example
   * const token = await lock.lockAndGetToken();
   * @redisson `RFencedLock#lockAndGetToken()`, `lockAndGetToken(long, TimeUnit)`. Differs: times are milliseconds, and
   *   the hold has the given lease.
   */
  lockAndGetToken(leaseTime?: number, options?: CallOptions): Promise<bigint>;
  lockAndGetToken(options: LockOptions): Promise<bigint>;
  lockAndGetToken(first?: number | LockOptions, second?: CallOptions): Promise<bigint> {
    try {
      const call = this.lockCall(first, second, this.lockAndGetToken);
      return this.takeForUnlock('lockAndGetToken', call, TOKEN, undefined);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Acquires the lock like {@link Lock.tryLock}, and resolves with the token of the hold.
   *
   * @returns the token, or `null` if the lock stayed busy. A busy lock draws no token.
   * @throws the errors of {@link Lock.lock}.
   * @example
   * const token = await lock.tryLockAndGetToken(5_000);
   * @redisson `RFencedLock#tryLockAndGetToken(long, long, TimeUnit)`. Differs: times are milliseconds, and without
   *   `waitTime` the call tries once, where Redisson waits without limit.
   */
  tryLockAndGetToken(waitTime?: number, leaseTime?: number, options?: CallOptions): Promise<bigint | null>;
  tryLockAndGetToken(options: TryLockOptions): Promise<bigint | null>;
  tryLockAndGetToken(first?: number | TryLockOptions, leaseTime?: number, third?: CallOptions): Promise<bigint | null> {
    try {
      const call = this.tryLockCall(first, leaseTime, third, this.tryLockAndGetToken);
      return this.takeForUnlock<bigint | null>('tryLockAndGetToken', call, TOKEN, null);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * Reads from Redis the last token that any client drew; `0n` before the first one.
   *
   * @redisson `RFencedLock#getToken()`
   */
  async getToken(): Promise<bigint> {
    this.checkOpen();
    return this.runtime.executor.ask(reads.getToken, [this.protocol.tokenKey], []);
  }
}

const TOKEN: GrantedValue<bigint> = { ofHold: ({ token }: FencedHold) => token };

export function checkTokens(value: unknown): TokenSource {
  if (value === undefined || value === 'counter') return 'counter';
  if (value === 'clock') return value;
  throw new InvalidArgumentError('tokens', "'counter' or 'clock'", value);
}
