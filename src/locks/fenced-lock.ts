import { boundRejection } from '../ownership/bound-promise.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import type { FencedHold } from '../holding/single-hold.js';
import { InvalidArgumentError } from '../errors.js';
import { tokenKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/fenced-lock.js';
import type { AcquireReply, HandOffReply, HeldReply } from '../redis/scripts/lock.js';
import * as reads from '../redis/scripts/reads.js';
import type { AcquireOptions, ContextOptions, LockOptions } from './arguments.js';
import type { CallOptions } from './lock-call.js';
import { PlainLockProtocol, type ProtocolPort } from '../protocols/plain-lock-protocol.js';
import { SingleLock } from './single-lock.js';

export type TokenSource = scripts.TokenSource;

/** Options of a fenced lock's handle. */
export interface FencedLockOptions extends ContextOptions {
  /**
   * How tokens are drawn. Absent or `'counter'`: 1, 2, 3 and so on, as Redisson does; a failover that loses the last
   * writes can then issue a token twice. `'clock'`: at least the server's time in microseconds, so that it cannot,
   * as long as the servers' clocks differ by less than the failover takes. A JVM goes on counting from such a token.
   */
  tokens?: TokenSource | undefined;
}

/** The plain lock, and a counter that every acquisition raises in the same script. */
export class FencedLockProtocol extends PlainLockProtocol {
  readonly tokenKey: string;

  constructor(
    port: ProtocolPort,
    name: string,
    private readonly tokens: TokenSource,
  ) {
    super(port, name);
    this.tokenKey = tokenKey(this.key);
  }

  override acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.acquire, [this.key, this.tokenKey], [owner, leaseMs, this.tokens]);
  }

  override acquireNested(
    owner: string,
    holdCount: number,
    leaseMs: number,
    _open?: readonly LockProtocol[],
    token?: bigint,
  ): ScriptRequest<HeldReply> {
    const args = [owner, holdCount, leaseMs, this.tokens, String(token ?? '')] as const;
    return this.port.executor.run(scripts.acquireNested, [this.key, this.tokenKey], [...args]);
  }

  override handOff(from: string, to: string, leaseMs: number, ours: number): ScriptRequest<HandOffReply> {
    const { executor, publish } = this.port;
    const args = [from, to, leaseMs, publish, this.channel, ours, this.tokens] as const;
    return executor.run(scripts.handOff, [this.key, this.tokenKey], [...args]);
  }
}

/**
 * A lock whose every hold has a token that is larger than all before it: Redisson's `RFencedLock`. Pass the token along
 * with what you write; a resource that refuses a smaller token than it has seen is safe from a holder that lost the
 * lock and has not noticed yet. Everything else is as in {@link Lock}.
 */
export class FencedLock extends SingleLock<FencedHold> {
  /** @internal */
  declare protected readonly protocol: FencedLockProtocol;

  /**
   * As {@link lock}, and gives the token of the hold.
   *
   * @throws as {@link lock}.
   * @see Redisson `RFencedLock#lockAndGetToken()`, `lockAndGetToken(long, TimeUnit)`; differs: milliseconds only, and
   *   the lease that is given is the one that is used.
   */
  lockAndGetToken(leaseTime?: number, options?: CallOptions): Promise<bigint>;
  lockAndGetToken(options: LockOptions): Promise<bigint>;
  lockAndGetToken(first?: number | LockOptions, second?: CallOptions): Promise<bigint> {
    try {
      const call = this.lockCall(first, second, this.lockAndGetToken);
      return this.bare('lockAndGetToken', call, tokenOf, undefined);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * As {@link tryLock}, and gives the token of the hold.
   *
   * @returns `null` if it was busy all the time. No token was drawn then.
   * @throws as {@link lock}.
   * @see Redisson `RFencedLock#tryLockAndGetToken(long, long, TimeUnit)`; differs: milliseconds only, and without a
   *   wait it is one try, where Redisson waits without limit.
   */
  tryLockAndGetToken(waitTime?: number, leaseTime?: number, options?: CallOptions): Promise<bigint | null>;
  tryLockAndGetToken(options: AcquireOptions): Promise<bigint | null>;
  tryLockAndGetToken(first?: number | AcquireOptions, leaseTime?: number, third?: CallOptions): Promise<bigint | null> {
    try {
      const call = this.tryLockCall(first, leaseTime, third, this.tryLockAndGetToken);
      return this.bare<bigint | null>('tryLockAndGetToken', call, tokenOf, null);
    } catch (error) {
      return boundRejection(error);
    }
  }

  /**
   * The last token that was drawn, by whomever; `0n` before the first.
   *
   * @see Redisson `RFencedLock#getToken()`.
   */
  async getToken(): Promise<bigint> {
    this.checkOpen();
    return this.executor.ask(reads.getToken, [this.protocol.tokenKey], []);
  }
}

const tokenOf = (hold: FencedHold): bigint => hold.token;

export function checkTokens(value: unknown): TokenSource {
  if (value === undefined || value === 'counter') return 'counter';
  if (value === 'clock') return value;
  throw new InvalidArgumentError('tokens', "'counter' or 'clock'", value);
}
