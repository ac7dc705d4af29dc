import { describe, expect, test } from '@jest/globals';
import { seenAt, type SeenLine } from './seen-line.js';
import { ServerTruth } from './server-truth.js';
import { LOCK_SCRIPTS } from '../../support/lua/lock-scripts.js';

const [FIRST, SECOND, THIRD] = [0, 1, 2];
const SERVERS = [7_001, 7_002, 7_003].map((port) => ({ host: '127.0.0.1', port }));
const ACQUIRE = LOCK_SCRIPTS.get('acquire')!.sha;

/** Three servers, and what MONITOR tells of them, one line each ms. */
class Told {
  readonly lines: SeenLine[] = [];
  #time = 1_000;

  say(node: number, source: string, command: string, ...args: (string | number)[]): this {
    const line = { source, command, args: args.map(String), time: (this.#time += 1), database: 0 };
    this.lines.push(seenAt(line, node, SERVERS));
    return this;
  }

  /** A script takes the lock at one server; its replicas hear of it. */
  acquire(node: number, owner: string, leaseMs: number, ...replicas: number[]): this {
    this.say(node, 'client', 'EVALSHA', ACQUIRE, 1, 'lock', owner, leaseMs, 0);
    this.say(node, 'lua', 'HSET', 'lock', owner, 1).say(node, 'lua', 'PEXPIRE', 'lock', leaseMs);
    const expiresAt = this.#time + leaseMs;
    for (const replica of replicas) {
      this.say(replica, 'master', 'HSET', 'lock', owner, 1).say(replica, 'master', 'PEXPIREAT', 'lock', expiresAt);
    }
    return this;
  }

  renew(node: number, leaseMs: number): this {
    return this.say(node, 'lua', 'PEXPIRE', 'lock', leaseMs);
  }

  release(node: number, owner: string, ...replicas: number[]): this {
    this.say(node, 'lua', 'HDEL', 'lock', owner);
    for (const replica of replicas) this.say(replica, 'master', 'HDEL', 'lock', owner);
    return this;
  }

  wait(ms: number): this {
    this.#time += ms;
    return this;
  }

  get truth(): ServerTruth {
    const truth = new ServerTruth(0, SERVERS.length);
    truth.read(this.lines);
    truth.end(this.#time + 1);
    return truth;
  }
}

describe('a replica takes over', () => {
  test('that had everything: nothing was lost, and the owner had the lock all the while', () => {
    const { truth } = new Told().acquire(FIRST, 'a', 5_000, SECOND).wait(100).renew(SECOND, 9_000).release(SECOND, 'a');
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toEqual([expect.objectContaining({ owner: 'a', from: 1_002, at: 1_107 })]);
  });

  test('that never heard of a grant: it is counted as lost from the grant on, and a second owner is no contradiction', () => {
    const { truth } = new Told().acquire(FIRST, 'a', 5_000).wait(100).acquire(SECOND, 'b', 5_000);
    expect(truth.lost).toEqual([
      {
        lock: 'lock',
        from: 1_000,
        at: 1_107,
        before: 'a',
        after: undefined,
        by: expect.stringContaining('HSET at 1 after 0'),
      },
    ]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held.map(({ type, ...held }) => [type, 'owner' in held && held.owner])).toEqual([
      ['held', 'a'],
      ['held', 'b'],
    ]);
  });

  test('that never heard of a grant, and lets what it had before end, as its former master hears: counted as lost', () => {
    const told = new Told().acquire(FIRST, 'b', 50, SECOND).wait(60).acquire(FIRST, 'a', 5_000).wait(100);
    const { truth } = told.say(FIRST, '127.0.0.1:7002', 'DEL', 'lock');
    expect(truth.lost).toEqual([expect.objectContaining({ before: 'a', after: undefined })]);
    expect(truth.contradictions).toEqual([]);
  });

  test('that had the grant, and takes it away: nothing says that it was lost', () => {
    const told = new Told().acquire(FIRST, 'a', 5_000, SECOND, THIRD).wait(100);
    const { truth } = told.say(FIRST, '127.0.0.1:7002', 'DEL', 'lock');
    expect(truth.lost).toEqual([]);
    expect(truth.held).toEqual([
      expect.objectContaining({ owner: 'a', ended: expect.stringContaining('another command') }),
    ]);
  });

  test('that had the grant, and then lets somebody else in: a contradiction, since nothing was lost', () => {
    const { truth } = new Told().acquire(FIRST, 'a', 5_000, SECOND).wait(100).acquire(SECOND, 'b', 5_000);
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([expect.stringContaining('b was put beside a')]);
  });

  test('that never heard of a release: the lock is taken again until its lease ends', () => {
    const { truth } = new Told().acquire(FIRST, 'a', 5_000, SECOND).release(FIRST, 'a').wait(100).renew(SECOND, 9_000);
    expect(truth.lost).toEqual([expect.objectContaining({ before: undefined, after: 'a' })]);
    expect(truth.contradictions).toEqual([]);
  });

  test('that never heard of a renewal: the next owner is no contradiction', () => {
    const told = new Told().acquire(FIRST, 'a', 200, SECOND).renew(FIRST, 5_000).wait(300).acquire(SECOND, 'b', 5_000);
    expect(told.truth.lost).toEqual([expect.objectContaining({ before: 'a', after: undefined })]);
    expect(told.truth.contradictions).toEqual([]);
  });

  test('and lets the next owner in while the lease ends, by its clock and not yet by the other one: nothing was lost', () => {
    const told = new Told().acquire(FIRST, 'a', 200).say(SECOND, 'master', 'HSET', 'lock', 'a', 1);
    const { truth } = told.say(SECOND, 'master', 'PEXPIREAT', 'lock', 1_202).wait(196).acquire(SECOND, 'b', 5_000);
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held[1]).toMatchObject({ owner: 'b', from: 1_203 });
  });

  test('with a state that the lock never had: a contradiction', () => {
    const told = new Told().acquire(FIRST, 'a', 5_000).say(SECOND, 'master', 'HSET', 'lock', 'x', 1).wait(100);
    expect(told.acquire(SECOND, 'b', 5_000).truth.contradictions).toContainEqual(
      expect.stringContaining('as it never was'),
    );
  });
});

describe('a master that was filled anew as a replica takes over again', () => {
  /** It renewed what its successor had until 1,205 only; nobody wrote to the lock meanwhile. */
  const told = (): Told =>
    new Told().acquire(FIRST, 'a', 200, SECOND).renew(FIRST, 5_000).say(FIRST, 'nemesis', 'SYNCED', SECOND);

  test('what it had written before, and its successor never had, is lost: the next owner is no contradiction', () => {
    const { truth } = told().wait(300).acquire(FIRST, 'b', 5_000);
    expect(truth.lost).toEqual([expect.objectContaining({ before: 'a', after: 'a' })]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toEqual([
      expect.objectContaining({ owner: 'a', at: 1_007 }),
      expect.objectContaining({ owner: 'a', from: 1_007, at: 1_203 }),
      expect.objectContaining({ owner: 'b' }),
    ]);
  });

  test('whoever is let in beside an owner that both had is a contradiction', () => {
    expect(told().wait(100).acquire(FIRST, 'b', 5_000).truth.contradictions).toEqual([
      expect.stringContaining('b was put beside a'),
    ]);
  });
});

test('what only looks at a lock pushes nothing out of what is remembered of it', () => {
  const told = new Told().acquire(FIRST, 'a', 60_000, SECOND).renew(FIRST, 90_000);
  for (let i = 0; i < 300; i += 1) told.say(FIRST, 'lua', 'PTTL', 'lock');
  const { truth } = told.renew(SECOND, 70_000);
  expect(truth.contradictions).toEqual([]);
  expect(truth.lost).toHaveLength(1);
});

describe('a slot moves', () => {
  test('with a key: its owner keeps it', () => {
    const told = new Told().acquire(FIRST, 'a', 5_000).say(SECOND, 'server', 'RESTORE-ASKING', 'lock', 4_900, '...');
    const { truth } = told.wait(10).renew(SECOND, 9_000).release(SECOND, 'a').acquire(SECOND, 'b', 1_000);
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toHaveLength(2);
  });

  test('with a key: what the replica of its new server tells of it is no second move', () => {
    const told = new Told().acquire(FIRST, 'a', 5_000).say(SECOND, 'server', 'RESTORE-ASKING', 'lock', 4_900, '...');
    told.renew(SECOND, 9_000).say(THIRD, '127.0.0.1:7002', 'RESTORE-ASKING', 'lock', 5_910, '...', 'ABSTTL').wait(10);
    const { truth } = told.renew(SECOND, 9_000).release(SECOND, 'a');
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toHaveLength(1);
  });

  test('from a replica that took over and has not written to the lock since', () => {
    const told = new Told().acquire(FIRST, 'a', 5_000).wait(50).say(SECOND, 'nemesis', 'LEAVES', 'lock');
    expect(told.truth.lost).toEqual([expect.objectContaining({ before: 'a', after: undefined })]);
  });
});

test('a replica that has been filled anew has what its master has', () => {
  const told = new Told().acquire(FIRST, 'a', 5_000).say(SECOND, 'nemesis', 'SYNCED', FIRST).wait(10);
  expect(told.renew(SECOND, 9_000).truth.lost).toEqual([]);
});
