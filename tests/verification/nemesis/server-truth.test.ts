import { describe, expect, test } from '@jest/globals';
import { seenAt, type SeenLine } from './seen-line.js';
import { ServerTruth } from './server-truth.js';
import { LOCK_SCRIPTS } from '../../support/lua/lock-scripts.js';

const [FIRST, SECOND, THIRD] = [0, 1, 2];
const SERVERS = [7_001, 7_002, 7_003].map((port) => ({ host: '127.0.0.1', port }));
const ACQUIRE = LOCK_SCRIPTS.get('acquire')!.sha;

/** Three servers, with one line of MONITOR each ms. */
class MonitoredServers {
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
    return this.say(node, 'lua', 'PEXPIRE', 'lock', leaseMs, 'GT');
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
  test('that had everything: nothing is lost, and the owner had the lock all the time', () => {
    const { truth } = new MonitoredServers()
      .acquire(FIRST, 'a', 5_000, SECOND)
      .wait(100)
      .renew(SECOND, 9_000)
      .release(SECOND, 'a');
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toEqual([expect.objectContaining({ owner: 'a', from: 1_002, at: 1_107 })]);
  });

  test('without a grant: the hold counts as lost from the grant on, and a second owner is no contradiction', () => {
    const { truth } = new MonitoredServers().acquire(FIRST, 'a', 5_000).wait(100).acquire(SECOND, 'b', 5_000);
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

  test('without a grant, on which the earlier hold ends: the grant counts as lost', () => {
    const told = new MonitoredServers().acquire(FIRST, 'b', 50, SECOND).wait(60).acquire(FIRST, 'a', 5_000).wait(100);
    const { truth } = told.say(FIRST, '127.0.0.1:7002', 'DEL', 'lock');
    expect(truth.lost).toEqual([expect.objectContaining({ before: 'a', after: undefined })]);
    expect(truth.contradictions).toEqual([]);
  });

  test('with the grant, which deletes it: the hold does not count as lost', () => {
    const told = new MonitoredServers().acquire(FIRST, 'a', 5_000, SECOND, THIRD).wait(100);
    const { truth } = told.say(FIRST, '127.0.0.1:7002', 'DEL', 'lock');
    expect(truth.lost).toEqual([]);
    expect(truth.held).toEqual([
      expect.objectContaining({ owner: 'a', ended: expect.stringContaining('another command') }),
    ]);
  });

  test('with the grant, which grants another owner: a contradiction, because nothing was lost', () => {
    const { truth } = new MonitoredServers().acquire(FIRST, 'a', 5_000, SECOND).wait(100).acquire(SECOND, 'b', 5_000);
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([expect.stringContaining('b was put beside a')]);
  });

  test('without a release: the lock is held again until its lease ends', () => {
    const { truth } = new MonitoredServers()
      .acquire(FIRST, 'a', 5_000, SECOND)
      .release(FIRST, 'a')
      .wait(100)
      .renew(SECOND, 9_000);
    expect(truth.lost).toEqual([expect.objectContaining({ before: undefined, after: 'a' })]);
    expect(truth.contradictions).toEqual([]);
  });

  test('without a renewal: the next owner is no contradiction', () => {
    const told = new MonitoredServers()
      .acquire(FIRST, 'a', 200, SECOND)
      .renew(FIRST, 5_000)
      .wait(300)
      .acquire(SECOND, 'b', 5_000);
    expect(told.truth.lost).toEqual([expect.objectContaining({ before: 'a', after: undefined })]);
    expect(told.truth.contradictions).toEqual([]);
  });

  test('and renews the lock for less: the longer lease stays', () => {
    const told = new MonitoredServers().acquire(FIRST, 'a', 5_000, SECOND).renew(SECOND, 200).wait(300);
    const { truth } = told.release(SECOND, 'a');
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toEqual([expect.objectContaining({ owner: 'a', from: 1_002, at: 1_307 })]);
  });

  test('and grants the next owner when the lease ends by its own clock first: nothing is lost', () => {
    const told = new MonitoredServers().acquire(FIRST, 'a', 200).say(SECOND, 'master', 'HSET', 'lock', 'a', 1);
    const { truth } = told.say(SECOND, 'master', 'PEXPIREAT', 'lock', 1_202).wait(196).acquire(SECOND, 'b', 5_000);
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held[1]).toMatchObject({ owner: 'b', from: 1_203 });
  });

  test('with a state that the lock never had: a contradiction', () => {
    const told = new MonitoredServers()
      .acquire(FIRST, 'a', 5_000)
      .say(SECOND, 'master', 'HSET', 'lock', 'x', 1)
      .wait(100);
    expect(told.acquire(SECOND, 'b', 5_000).truth.contradictions).toContainEqual(
      expect.stringContaining('as it never was'),
    );
  });
});

describe('a master that was resynchronized as a replica takes over again', () => {
  /** It renewed a hold that its successor had until 1,205 only, without a write to the lock in between. */
  const told = (): MonitoredServers =>
    new MonitoredServers().acquire(FIRST, 'a', 200, SECOND).renew(FIRST, 5_000).say(FIRST, 'nemesis', 'SYNCED', SECOND);

  test('its earlier writes that the successor never had are lost: the next owner is no contradiction', () => {
    const { truth } = told().wait(300).acquire(FIRST, 'b', 5_000);
    expect(truth.lost).toEqual([expect.objectContaining({ before: 'a', after: 'a' })]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toEqual([
      expect.objectContaining({ owner: 'a', at: 1_007 }),
      expect.objectContaining({ owner: 'a', from: 1_007, at: 1_203 }),
      expect.objectContaining({ owner: 'b' }),
    ]);
  });

  test('a grant beside an owner that both masters had is a contradiction', () => {
    expect(told().wait(100).acquire(FIRST, 'b', 5_000).truth.contradictions).toEqual([
      expect.stringContaining('b was put beside a'),
    ]);
  });
});

test('reads of a lock do not displace its remembered writes', () => {
  const told = new MonitoredServers().acquire(FIRST, 'a', 60_000, SECOND).renew(FIRST, 90_000);
  for (let i = 0; i < 300; i += 1) told.say(FIRST, 'lua', 'PTTL', 'lock');
  const { truth } = told.renew(SECOND, 70_000);
  expect(truth.contradictions).toEqual([]);
  expect(truth.lost).toHaveLength(1);
});

describe('a slot moves', () => {
  test('with a key: its owner keeps it', () => {
    const told = new MonitoredServers()
      .acquire(FIRST, 'a', 5_000)
      .say(SECOND, 'server', 'RESTORE-ASKING', 'lock', 4_900, '...');
    const { truth } = told.wait(10).renew(SECOND, 9_000).release(SECOND, 'a').acquire(SECOND, 'b', 1_000);
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toHaveLength(2);
  });

  test('with a key: the report of the replica of its new server is no second move', () => {
    const told = new MonitoredServers()
      .acquire(FIRST, 'a', 5_000)
      .say(SECOND, 'server', 'RESTORE-ASKING', 'lock', 4_900, '...');
    told.renew(SECOND, 9_000).say(THIRD, '127.0.0.1:7002', 'RESTORE-ASKING', 'lock', 5_910, '...', 'ABSTTL').wait(10);
    const { truth } = told.renew(SECOND, 9_000).release(SECOND, 'a');
    expect(truth.lost).toEqual([]);
    expect(truth.contradictions).toEqual([]);
    expect(truth.held).toHaveLength(1);
  });

  test('from a replica that took over and has not written to the lock since', () => {
    const told = new MonitoredServers().acquire(FIRST, 'a', 5_000).wait(50).say(SECOND, 'nemesis', 'LEAVES', 'lock');
    expect(told.truth.lost).toEqual([expect.objectContaining({ before: 'a', after: undefined })]);
  });
});

test('a replica after a full sync has the state of its master', () => {
  const told = new MonitoredServers().acquire(FIRST, 'a', 5_000).say(SECOND, 'nemesis', 'SYNCED', FIRST).wait(10);
  expect(told.renew(SECOND, 9_000).truth.lost).toEqual([]);
});
