import { expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { rollKey } from '../../src/redis/keys.js';
import { admin } from '../support/redis.js';
import { allChannels, serverMajor } from '../support/servers/server-version.js';
import { until } from '../support/time/until.js';
import { between, type ScriptBench } from './script-bench.js';

/** What the own channels of the clients begin with: no part of it is the name of a lock, which other tests listen to. */
export const OWN = 'holdfast_wake:';

/** The roll of one lock, its clients by letter, and the messages that they get. */
export class Roll {
  readonly key: string;
  readonly #ids = new Map<string, string>();
  readonly #messages: string[] = [];
  /** Messages that no script should have sent. */
  readonly #wrong: string[] = [];
  #redis: Redis | undefined;
  #others: Redis | undefined;
  readonly #refused: [user: string, redis: Redis][] = [];

  constructor(
    name: string,
    readonly publish: 'PUBLISH' | 'SPUBLISH' = 'PUBLISH',
  ) {
    this.key = rollKey(name);
  }

  /** The station of a client, which is its id: of version 8. */
  station(letter: string): string {
    const random = randomUUID();
    const id = this.#ids.get(letter) ?? `${random.slice(0, 14)}8${random.slice(15)}`;
    this.#ids.set(letter, id);
    return id;
  }

  /** Parks clients that listen to their channels, the oldest first. Capitals: nobody listens. */
  async park(letters: string): Promise<void> {
    for (const [at, letter] of letters.split('').entries()) {
      if (letter === letter.toLowerCase()) await this.listen(letter);
      await admin().zadd(this.key, 1_000 + at, this.station(letter));
    }
    await admin().pexpire(this.key, 30_000);
  }

  async listen(letter: string): Promise<void> {
    this.#redis ??= this.#open();
    if (this.publish === 'SPUBLISH') await this.#redis.ssubscribe(OWN + this.station(letter));
    else await this.#redis.subscribe(OWN + this.station(letter));
  }

  /** Another client waits for messages on the channel of the lock. */
  async listenTo(channel: string): Promise<void> {
    this.#others = admin().duplicate();
    await this.#others.subscribe(channel);
  }

  #open(): Redis {
    const redis = admin().duplicate();
    const heard = (channel: string, payload: string): void => {
      const [kind = '', station = '', roll] = payload.split(' ');
      if (kind === 'marker') this.#messages.push(station);
      else if (channel !== OWN + station || roll !== this.key) this.#wrong.push(`${channel} ${payload}`);
      else this.#messages.push(kind + this.#letterOf(station));
    };
    redis.on('message', heard);
    redis.on('smessage', heard);
    return redis;
  }

  #letterOf(station: string): string {
    return [...this.#ids].find(([, id]) => id === station)?.[0] ?? station;
  }

  /** The messages in their order, such as `1a 2b`: a is woken, and b stands by. */
  async told(): Promise<string> {
    if (this.#redis === undefined) return '';
    const marker = randomUUID();
    await this.#redis.subscribe(OWN + marker);
    await admin().publish(OWN + marker, `marker ${marker}`);
    await until(() => this.#messages.includes(marker), 'the marker has come, and with it all messages before it');
    expect(this.#wrong).toEqual([]);
    return this.#messages
      .splice(0)
      .filter((message) => message !== marker)
      .join(' ');
  }

  /** The clients in the roll, the oldest first. */
  async parked(): Promise<string> {
    return (await admin().zrange(this.key, '0', '-1')).map((station) => this.#letterOf(station)).join('');
  }

  /** The roll expires a minute after a client was added to it. */
  async expectFresh(): Promise<void> {
    expect(await admin().pttl(this.key)).toEqual(between(55_000, 60_000));
  }

  /** A connection that Redis refuses some commands or channels. */
  async refused(...rules: string[]): Promise<Redis> {
    const user = `roll-${randomUUID()}`;
    const channels = rules.some((rule) => rule.startsWith('&')) ? ['resetchannels'] : [allChannels()].filter(Boolean);
    await admin().acl('SETUSER', user, 'on', 'nopass', '~*', ...channels, '+@all', ...rules);
    const redis = admin().duplicate({ username: user, password: 'any' });
    this.#refused.push([user, redis]);
    return redis;
  }

  async close(): Promise<void> {
    await this.#redis?.quit();
    await this.#others?.quit();
    for (const [user, redis] of this.#refused) {
      redis.disconnect();
      await admin().acl('DELUSER', user);
    }
    await admin().del(this.key);
  }
}

type Property = (bench: ScriptBench) => Promise<void>;

/** A property of a script and a roll. */
export const withRoll =
  (property: (roll: Roll, bench: ScriptBench) => Promise<void>, publish?: Roll['publish']): Property =>
  async (bench) => {
    const roll = new Roll(bench.name, publish);
    try {
      await property(roll, bench);
    } finally {
      await roll.close();
    }
  };

/** A script that frees a lock, and the arguments by which it wakes others. */
export interface Freeing {
  /** The reply if it has done all. */
  readonly done: number;
  /** Redisson's message that it publishes. Its own subscribers are one: the bench. */
  readonly payload?: string;
  /** Lets an owner have the lock. */
  hold(bench: ScriptBench): Promise<unknown>;
  keys(bench: ScriptBench): string[];
  args(bench: ScriptBench, roll: Waking): Words;
  /** `one`: it parks no waiter, and takes no number of clients. `streak`: it frees the lock only if other clients wait. */
  readonly form?: 'one' | 'streak';
}

interface Waking {
  readonly publish: string;
  readonly ours: number;
  readonly waiters: string;
  readonly own: string;
  readonly most: number;
  readonly station: string;
}

type Words = (string | number)[];

/** What holds for each script that frees a lock, by the line of Returns in its header. */
export function wakingProperties(
  source: string,
  how: Freeing,
): Record<'done' | '5' | '6' | '7', Record<string, Property>> {
  const free = async (
    bench: ScriptBench,
    roll: Roll,
    { ours = 1, own = OWN, most = 1, station = '', by = admin() } = {},
  ): Promise<unknown> => {
    await how.hold(bench);
    const keys = how.keys(bench);
    const { key: waiters, publish } = roll;
    const words = how.args(bench, { publish, ours, waiters, own, most, station });
    const reply = await by.eval(source, keys.length, ...keys, ...words);
    expect(await admin().exists(bench.name)).toBe(0);
    const isHeard = how.payload !== undefined && publish === 'PUBLISH';
    const messages = isHeard ? [{ channel: bench.channel, payload: how.payload }] : [];
    expect(await bench.published()).toEqual(messages);
    return reply;
  };
  const done: Record<string, Property> = {
    'the oldest parked client is woken and leaves the roll, and the next one stands by': withRoll(
      async (roll, bench) => {
        await roll.park('abc');
        expect(await free(bench, roll)).toBe(how.done);
        expect(await roll.told()).toBe('1a 2b');
        expect(await roll.parked()).toBe('bc');
      },
    ),
    'a client that does not listen leaves the roll, and the next one is woken': withRoll(async (roll, bench) => {
      await roll.park('ABcDe');
      expect(await free(bench, roll)).toBe(how.done);
      expect(await roll.told()).toBe('1c 2e');
      expect(await roll.parked()).toBe('e');
    }),
    'no client listens: the roll is empty': withRoll(async (roll, bench) => {
      await roll.park('AB');
      expect(await free(bench, roll)).toBe(how.done);
      expect(await roll.parked()).toBe('');
    }),
    'a repeat wakes nobody': withRoll(async (roll, bench) => {
      await roll.park('ab');
      await free(bench, roll);
      await roll.told();
      const keys = how.keys(bench);
      const { key: waiters, publish } = roll;
      const words = how.args(bench, { publish, ours: 1, waiters, own: OWN, most: 1, station: '' });
      await admin().eval(source, keys.length, ...keys, ...words);
      expect(await roll.told()).toBe('');
      expect(await roll.parked()).toBe('b');
      await bench.published();
    }),
    'without a prefix of channels the roll is left alone': withRoll(async (roll, bench) => {
      await roll.park('ab');
      await roll.listenTo(bench.channel);
      expect(await free(bench, roll, { ours: 0, own: '', station: roll.station('x') })).toBe(how.done);
      expect(await roll.told()).toBe('');
      expect(await roll.parked()).toBe('ab');
    }),
    'a client that is woken and cannot be removed is woken all the same': withRoll(async (roll, bench) => {
      await roll.park('ab');
      expect(await free(bench, roll, { by: await roll.refused('-zrem') })).toBe(how.done);
      expect(await roll.told()).toBe('1a 2a');
      expect(await roll.parked()).toBe('ab');
    }),
  };
  if (how.form !== 'streak')
    Object.assign(done, {
      'nobody is parked': withRoll(async (roll, bench) => {
        expect(await free(bench, roll)).toBe(how.done);
      }),
    } satisfies Record<string, Property>);
  if (serverMajor() >= 7)
    Object.assign(done, {
      'the messages are published with the given command': withRoll(async (roll, bench) => {
        await roll.park('ab');
        // No client has subscribed to the sharded channel of the lock.
        expect(await free(bench, roll, { ours: 0 })).toBe(how.done);
        expect(await roll.told()).toBe('1a 2b');
      }, 'SPUBLISH'),
    } satisfies Record<string, Property>);
  if (how.form === undefined)
    Object.assign(done, {
      'subscribers do not count with -1': withRoll(async (roll, bench) => {
        await roll.park('abc');
        expect(await free(bench, roll, { ours: -1 })).toBe(how.done);
        expect(await roll.told()).toBe('1a 2b');
      }),
    } satisfies Record<string, Property>);
  if (how.form !== 'one')
    Object.assign(done, {
      'several clients are woken if the request says so': withRoll(async (roll, bench) => {
        await roll.park('abcd');
        expect(await free(bench, roll, { most: 3 })).toBe(how.done);
        expect(await roll.told()).toBe('1a 1b 1c 2d');
        expect(await roll.parked()).toBe('d');
      }),
      'each other subscriber of the channel of the lock wakes one more': withRoll(async (roll, bench) => {
        await roll.park('abcd');
        expect(await free(bench, roll, { ours: 0 })).toBe(how.done);
        expect(await roll.told()).toBe('1a 1b 2c');
      }),
      'the next waiter of the client is parked behind the others': withRoll(async (roll, bench) => {
        await roll.park('a');
        await roll.listen('x');
        expect(await free(bench, roll, { station: roll.station('x') })).toBe(how.done);
        expect(await roll.told()).toBe('1a 2x');
        expect(await roll.parked()).toBe('x');
        await roll.expectFresh();
        expect(await admin().zscore(roll.key, roll.station('x'))).toBe('2000');
      }),
    } satisfies Record<string, Property>);
  return {
    done,
    '5': {
      'the next waiter of the client is not parked if nobody was woken': withRoll(async (roll, bench) => {
        await roll.park('A');
        expect(await free(bench, roll, { station: roll.station('x') })).toBe(5);
        expect(await roll.parked()).toBe('');
      }),
    },
    '6': {
      'Redis refuses to park the next waiter of the client': withRoll(async (roll, bench) => {
        await roll.park('ab');
        const by = await roll.refused('-zadd');
        expect(await free(bench, roll, { station: roll.station('x'), by })).toBe(6);
        expect(await roll.told()).toBe('1a 2b');
        expect(await roll.parked()).toBe('b');
      }),
    },
    '7': {
      ...(how.form !== 'streak' && {
        'the key of the roll has another type, and the lock is free all the same': withRoll(async (roll, bench) => {
          await admin().set(roll.key, 'not a roll');
          expect(await free(bench, roll)).toBe(7);
          expect(await admin().get(roll.key)).toBe('not a roll');
        }),
      }),
      'Redis refuses to take a client off the roll that does not listen': withRoll(async (roll, bench) => {
        await roll.park('Ab');
        const by = await roll.refused('-zrem');
        expect(await free(bench, roll, { by })).toBe(7);
        expect(await roll.told()).toBe('');
        expect(await roll.parked()).toBe('Ab');
      }),
      'Redis refuses to read the roll': withRoll(async (roll, bench) => {
        await roll.park('ab');
        const by = await roll.refused('-zrange');
        expect(await free(bench, roll, { by })).toBe(7);
        expect(await roll.told()).toBe('');
        expect(await roll.parked()).toBe('ab');
      }),
      ...(serverMajor() >= 7 && {
        'Redis refuses the channel of the client, which keeps its place': withRoll(async (roll, bench) => {
          await roll.park('a');
          const by = await roll.refused('&redisson_*');
          expect(await free(bench, roll, { by })).toBe(7);
          expect(await roll.told()).toBe('');
          expect(await roll.parked()).toBe('a');
          expect(await admin().zscore(roll.key, roll.station('a'))).toBe('1000');
        }),
      }),
    },
  };
}
