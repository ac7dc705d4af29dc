import { valueField } from '../../support/lua/value-field.js';
import { valueName, VALUES } from './kinds.js';
import { wholeMsLater, type Ended } from './server-view.js';

const NAMES: ReadonlyMap<string, string> = new Map(VALUES.map((value) => [valueField(value), value]));

interface HeldValue {
  readonly owner: string;
  readonly from: number;
  ends: number;
}

interface Group {
  expiresAt: number;
  /** By their fields in the hash. */
  readonly values: Map<string, HeldValue>;
}

/**
 * The owners of the values of groups at one server: as long as the key of the group exists, up to the end of each
 * value.
 */
export class GroupTruth {
  readonly #groups = new Map<string, Group>();

  constructor(
    private readonly wallAhead: number,
    private readonly ended: Ended,
  ) {}

  apply(at: number, command: string, [key = '', ...rest]: readonly string[]): void {
    this.#expire(key, at);
    const group = this.#groups.get(key);
    switch (command) {
      case 'HSET':
        return this.#set(at, key, rest);
      case 'PEXPIRE':
        if (group) group.expiresAt = wholeMsLater(at, Number(rest[0]), this.wallAhead);
        return;
      case 'HDEL':
        for (const field of rest) this.#over(key, field, at);
        return;
      case 'DEL':
        for (const field of [...(group?.values.keys() ?? [])]) this.#over(key, field, at);
        this.#groups.delete(key);
    }
  }

  end(at: number): void {
    for (const key of [...this.#groups.keys()]) {
      this.#expire(key, at);
      for (const field of [...(this.#groups.get(key)?.values.keys() ?? [])]) this.#over(key, field, at);
    }
    this.#groups.clear();
  }

  #set(at: number, key: string, pairs: readonly string[]): void {
    const group = this.#groups.get(key) ?? { expiresAt: Infinity, values: new Map<string, HeldValue>() };
    this.#groups.set(key, group);
    for (let i = 0; i < pairs.length; i += 2) {
      const [field, content] = [pairs[i] ?? '', pairs[i + 1] ?? ''];
      const [value = '', ...of] = field.split(':');
      const held = group.values.get(value);
      if (of.length === 0 && held?.owner !== content) {
        this.#over(key, value, at);
        group.values.set(value, { owner: content, from: at, ends: Infinity });
      } else if (of.at(-1) === 'expire_time' && held?.owner === of.slice(0, -1).join(':')) {
        held.ends = Number(content) - this.wallAhead;
      }
    }
  }

  /** Ends values that have expired by then. A later hold of the same owner is a new one. */
  #expire(key: string, at: number): void {
    const group = this.#groups.get(key);
    if (!group) return;
    for (const [field, { ends }] of [...group.values])
      if (Math.min(ends, group.expiresAt) < at) this.#over(key, field, at);
    if (group.expiresAt < at) this.#groups.delete(key);
  }

  #over(key: string, field: string, at: number): void {
    const group = this.#groups.get(key);
    const held = group?.values.get(field);
    if (!group || !held) return;
    group.values.delete(field);
    const { owner, from, ends } = held;
    this.ended({
      lock: valueName(key, NAMES.get(field) ?? field),
      owner,
      from,
      at: Math.min(at, ends, group.expiresAt),
    });
  }
}
