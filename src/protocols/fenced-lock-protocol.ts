import type { LockKind } from '../events.js';
import type { Named } from '../lock-name.js';
import { tokenKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/fenced-lock.js';
import type { AcquireReply, HandOffReply, HeldReply } from '../redis/scripts/replies.js';
import { subscribersArg, type OwnSubscribers } from '../redis/scripts/script.js';
import type { LockProtocol } from './lock-protocol.js';
import { PlainLockProtocol } from './plain-lock-protocol.js';
import { NO_ROLL, type ProtocolPort } from './protocol-port.js';

/** The plain lock with a counter. The script of every acquisition increments the counter. */
export class FencedLockProtocol extends PlainLockProtocol {
  readonly tokenKey: string;

  constructor(
    port: ProtocolPort,
    named: Named,
    private readonly tokens: scripts.TokenSource,
  ) {
    super(port, named);
    this.tokenKey = tokenKey(this.key);
  }

  override get kind(): LockKind {
    return 'fenced';
  }

  override get followsLocally(): boolean {
    return false;
  }

  override acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply> {
    const args = [owner, leaseMs, this.tokens, '', '', 0, 0] as const;
    return this.port.executor.run(scripts.acquire, [this.key, this.tokenKey], [...args]);
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

  override handOff(from: string, to: string, leaseMs: number, ours: OwnSubscribers): ScriptRequest<HandOffReply> {
    const { executor, publish, rollOf } = this.port;
    const [waiters, own] = rollOf?.(this.key) ?? NO_ROLL;
    return executor.run(
      scripts.handOff,
      [this.key, this.tokenKey],
      [from, to, leaseMs, publish, this.channel, subscribersArg(ours), waiters, own, 1, '', 0, this.tokens],
    );
  }
}
