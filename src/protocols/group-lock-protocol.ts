import { createHash } from 'node:crypto';
import type { LockParts, LockProtocol, RemainingHold, RenewalItem, RenewalScript } from './lock-protocol.js';
import { lockChannel } from '../redis/keys.js';
import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/group-lock.js';
import type { AcquireReply, HandOffReply, HeldReply, ReleaseReply } from '../redis/scripts/replies.js';
import { highwayHash128 } from './highway-hash.js';
import type { ProtocolPort } from './protocol-port.js';

/** Values of one group, by the names that they have in its hash. */
class GroupValues implements LockParts {
  readonly #hashes: ReadonlySet<string>;
  #line: string | undefined;

  private constructor(hashes: Iterable<string>) {
    // Sorted, so that the same values in another order stand in the same line.
    this.#hashes = new Set([...hashes].sort());
  }

  static of(values: Iterable<string>): GroupValues {
    return new GroupValues([...new Set(values)].map(hashOf));
  }

  static together(parts: readonly GroupValues[]): GroupValues {
    return new GroupValues(parts.flatMap((each) => [...each]));
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

  covers(other: LockParts): boolean {
    return [...other].every((hash) => this.has(hash));
  }

  overlaps(other: LockParts): boolean {
    return [...other].some((hash) => this.has(hash));
  }
}

/** A value as Redisson names it with a codec that writes strings as UTF-8; without the padding of Base64. */
const hashOf = (value: string): string => highwayHash128(Buffer.from(value)).toString('base64').slice(0, 22);

const NONE = GroupValues.of([]);
const valuesOf = ({ parts }: LockProtocol): GroupValues => (parts instanceof GroupValues ? parts : NONE);

/** Redisson's group multi-lock: one hash, in which every value of the group that is held has three fields. */
export class GroupLockProtocol implements LockProtocol {
  readonly key: string;
  readonly channel: string;
  readonly reentrant = true;
  /** Whoever waits for other values of the group may be the one to go next. */
  readonly handsOff = false;
  readonly family = 'group multi-lock';
  readonly half = undefined;
  readonly concurrent = false;
  readonly parts: GroupValues;

  constructor(
    private readonly port: ProtocolPort,
    readonly name: string,
    values: Iterable<string> | GroupValues,
  ) {
    this.key = port.keyPrefix + name;
    this.channel = lockChannel(this.key);
    this.parts = values instanceof GroupValues ? values : GroupValues.of(values);
  }

  /** For all values of these, which are of one group and one client. */
  static together(protocols: readonly [GroupLockProtocol, ...GroupLockProtocol[]]): GroupLockProtocol {
    const [{ port, name }] = protocols;
    return new GroupLockProtocol(port, name, GroupValues.together(protocols.map(({ parts }) => parts)));
  }

  /** Calls for the same values wait in one line. */
  get line(): string {
    return this.parts.line;
  }

  get renewal(): RenewalScript {
    return this.port.renewals.group;
  }

  acquire(owner: string, leaseMs: number): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.acquire, [this.key], [owner, leaseMs, ...this.parts]);
  }

  acquireNested(
    owner: string,
    _holdCount: number,
    leaseMs: number,
    open: readonly LockProtocol[],
  ): ScriptRequest<HeldReply> {
    // All that the owner has: its holds last as long as the latest of them, so no value may end before.
    const holds = [this.parts, ...open.map(valuesOf)];
    const values = new Set(holds.flatMap((each) => [...each]));
    const counts = [...values].flatMap((value) => [value, holds.filter((each) => each.has(value)).length]);
    return this.port.executor.run(scripts.acquireNested, [this.key], [owner, leaseMs, ...counts]);
  }

  releasePartial(owner: string, remaining: readonly RemainingHold[], leaseMs: number): ScriptRequest<HeldReply> {
    const { executor, publish } = this.port;
    const rest = remaining.map(({ protocol }) => valuesOf(protocol));
    const values = [...this.parts].flatMap((value) => {
      const holds = rest.filter((each) => each.has(value)).length;
      return [value, holds, holds > 0 ? leaseMs : 0];
    });
    return executor.run(scripts.releasePartial, [this.key], [owner, publish, this.channel, leaseMs, ...values]);
  }

  release(owners: readonly string[], last?: LockProtocol): ScriptRequest<ReleaseReply> {
    const needed = last === undefined ? NONE : valuesOf(last);
    const others = [...this.parts].filter((value) => !needed.has(value));
    return this.port.executor.run(
      scripts.release,
      [this.key],
      [this.port.publish, this.channel, owners.length, needed.size, ...owners, ...needed, ...others],
    );
  }

  handOff(): ScriptRequest<HandOffReply> {
    throw new Error('values of a group are not handed on');
  }

  /** What a force unlock needs, and the reads: they ask for the values, not for the key. */
  state(owner = '', until?: number): Promise<scripts.GroupState> {
    return this.port.executor.ask(scripts.state, [this.key], [owner, ...this.parts], until);
  }

  fieldOf(owner: string): string {
    return owner;
  }

  holdersAmong(fields: readonly string[]): string[] {
    return [...fields];
  }
}

/** One hold per script: it may have as many values as others have locks. Groups of a multi-lock have one owner. */
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
