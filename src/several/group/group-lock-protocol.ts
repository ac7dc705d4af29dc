import { groupOf, nameOf, type Named } from '../../lock-name.js';
import { createHash } from 'node:crypto';
import type { LockedValues } from '../../ownership/lock-context.js';
import type { LockProtocol, RemainingHold, RenewalItem, RenewalScript } from '../../protocols/lock-protocol.js';
import { lockChannel } from '../../redis/keys.js';
import type { ScriptExecutor } from '../../redis/requests/script-executor.js';
import type { ScriptRequest } from '../../redis/requests/script-request.js';
import * as scripts from './scripts.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply } from '../../redis/scripts/replies.js';
import { highwayHash128 } from './highway-hash.js';
import type { ProtocolPort } from '../../protocols/protocol-port.js';

/** Values of one group, as the hashes that name them in Redis. */
class GroupValues implements LockedValues {
  readonly #hashes: ReadonlySet<string>;
  #line: string | undefined;

  private constructor(hashes: Iterable<string>) {
    // Sorted, so that the same values in another order have the same line.
    this.#hashes = new Set([...hashes].sort());
  }

  static of(values: Iterable<string>): GroupValues {
    return new GroupValues([...new Set(values)].map(hashOf));
  }

  static together(all: readonly GroupValues[]): GroupValues {
    return new GroupValues(all.flatMap((each) => [...each]));
  }

  get size(): number {
    return this.#hashes.size;
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#hashes.values();
  }

  get line(): string {
    this.#line ??= createHash('sha1')
      .update([...this.#hashes].join())
      .digest('base64');
    return this.#line;
  }

  has(hash: string): boolean {
    return this.#hashes.has(hash);
  }

  covers(other: LockedValues): boolean {
    return [...other].every((hash) => this.has(hash));
  }

  overlaps(other: LockedValues): boolean {
    return [...other].some((hash) => this.has(hash));
  }
}

/**
 * The name of a value in Redis, as Redisson computes it with a codec that encodes strings as UTF-8: Base64 without
 * padding.
 */
const hashOf = (value: string): string => highwayHash128(Buffer.from(value)).toString('base64').slice(0, 22);

const NONE = GroupValues.of([]);
const valuesOf = ({ lockedValues }: LockProtocol): GroupValues =>
  lockedValues instanceof GroupValues ? lockedValues : NONE;

/** The requests of Redisson's group multi-lock: one hash, in which each held value of the group has three fields. */
export class GroupLockProtocol implements LockProtocol {
  readonly name: string;
  readonly group: string | undefined;
  readonly key: string;
  readonly channel: string;
  readonly kind = 'group';
  readonly reentrant = true;
  /**
   * The next owner may be a waiter for other values of the group, in another line. A hand-off within one line would
   * pass it.
   */
  readonly handsOff = false;
  readonly followsLocally = false;
  readonly family = 'group multi-lock';
  readonly side = undefined;
  readonly concurrent = false;
  readonly lockedValues: GroupValues;

  constructor(
    private readonly port: ProtocolPort,
    named: Named,
    values: Iterable<string> | GroupValues,
  ) {
    this.name = nameOf(named);
    this.group = groupOf(named);
    this.key = port.keyPrefix + this.name;
    this.channel = lockChannel(this.key);
    this.lockedValues = values instanceof GroupValues ? values : GroupValues.of(values);
  }

  /** Combines the values of several protocols of one group and one client. */
  static together(protocols: readonly [GroupLockProtocol, ...GroupLockProtocol[]]): GroupLockProtocol {
    const [first] = protocols;
    return new GroupLockProtocol(
      first.port,
      first,
      GroupValues.together(protocols.map(({ lockedValues }) => lockedValues)),
    );
  }

  /** Calls for the same values wait in one line. */
  get line(): string {
    return this.lockedValues.line;
  }

  get renewal(): RenewalScript {
    return this.port.renewals.group;
  }

  acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.acquire, [this.key], [owner, leaseMs, ...this.lockedValues]);
  }

  acquireNested(
    owner: string,
    _holdCount: number,
    leaseMs: number,
    open: readonly LockProtocol[],
  ): ScriptRequest<HeldReply> {
    // Names all values of the owner. All of its holds last as long as the longest one, so no value may end earlier.
    const holds = [this.lockedValues, ...open.map(valuesOf)];
    const values = new Set(holds.flatMap((each) => [...each]));
    const counts = [...values].flatMap((value) => [value, holds.filter((each) => each.has(value)).length]);
    return this.port.executor.run(scripts.acquireNested, [this.key], [owner, leaseMs, ...counts]);
  }

  releasePartial(owner: string, remaining: readonly RemainingHold[], leaseMs: number): ScriptRequest<HeldReply> {
    const { executor, publish } = this.port;
    const rest = remaining.map(({ protocol }) => valuesOf(protocol));
    const values = [...this.lockedValues].flatMap((value) => {
      const holds = rest.filter((each) => each.has(value)).length;
      return [value, holds, holds > 0 ? leaseMs : 0];
    });
    return executor.run(scripts.releasePartial, [this.key], [owner, publish, this.channel, leaseMs, ...values]);
  }

  release(owners: readonly string[], last?: LockProtocol): ScriptRequest<ReleaseReply> {
    const needed = last === undefined ? NONE : valuesOf(last);
    const others = [...this.lockedValues].filter((value) => !needed.has(value));
    return this.port.executor.run(
      scripts.release,
      [this.key],
      [this.port.publish, this.channel, owners.length, needed.size, ...owners, ...needed, ...others],
    );
  }

  handOff(): ScriptRequest<HandOffReply> {
    throw new Error('handOff() was called for a group multi-lock, whose handsOff is false');
  }

  /**
   * Reads the state of the values for a force unlock and for queries. The key alone does not say which values are held.
   */
  state(owner = '', until?: number): Promise<scripts.GroupState> {
    return this.port.executor.ask(scripts.state, [this.key], [owner, ...this.lockedValues], until);
  }

  fieldOf(owner: string): string {
    return owner;
  }

  holdersAmong(fields: readonly string[]): string[] {
    return [...fields];
  }
}

/**
 * Renews the holds of one owner in one group per script. They can have as many values as a renewal of another kind has
 * locks. A multi-lock can hold several groups under one owner id, so `groupOf` names the key as well.
 */
export function groupRenewal(executor: ScriptExecutor): RenewalScript {
  return {
    groupOf: ({ key, owner }) => `${owner} ${key}`,
    renew(items: readonly RenewalItem[]) {
      return executor.run(
        scripts.renew,
        items.map(({ key }) => key),
        items.flatMap(({ owner, leaseMs, holds = [] }) => {
          const values = new Set(holds.flatMap(({ protocol }) => [...valuesOf(protocol)]));
          const renewed = holds.some((hold) => hold.renewed) ? values.size : 0;
          return [owner, leaseMs, renewed, values.size - renewed, ...values];
        }),
      );
    },
  };
}
