import { expect, test } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { fairOrder } from './fair-order.js';
import { Referee } from './referee.js';
import type { MonitorLine } from '../servers/monitor-log.js';

const run = (command: string, ...args: string[]): MonitorLine => ({
  time: 0,
  database: 0,
  command,
  args,
  source: 'lua',
});
const script: MonitorLine = { time: 0, database: 0, command: 'EVALSHA', args: [], source: '127.0.0.1:1' };
const QUEUE = 'redisson_lock_queue:{lk}';
const join = (owner: string): MonitorLine[] => [script, run('RPUSH', QUEUE, owner)];
const enter = (owner: string): MonitorLine[] => [script, run('LPOP', QUEUE), run('HSET', 'lk', owner, '1')];
const leave: MonitorLine[] = [script, run('DEL', 'lk')];
const alone = (owner: string): MonitorLine[] => [script, run('HSET', 'lk', owner, '1')];

test('owners that enter in the order of the queue are in order', () => {
  const lines = [...alone('a'), ...join('b'), ...join('c'), ...leave, ...enter('b'), ...leave, ...enter('c'), ...leave];
  expect(fairOrder(lines, 'lk')).toEqual({ violations: [], granted: ['a', 'b', 'c'] });
});

test('a hand-over grants the head before the head leaves the queue, and removes the old holder', () => {
  const handOff = (from: string, to: string): MonitorLine[] => [
    script,
    run('HSET', 'lk', to, '1'),
    run('HDEL', 'lk', from),
    run('LPOP', QUEUE),
  ];
  const lines = [...alone('a'), ...join('b'), ...join('c'), ...handOff('a', 'b')];
  expect(fairOrder([...lines, ...handOff('b', 'c'), ...leave], 'lk')).toEqual({
    violations: [],
    granted: ['a', 'b', 'c'],
  });
  expect(fairOrder([...lines, ...join('d'), ...handOff('b', 'd')], 'lk').violations).toContain(
    'd was granted the lock before c',
  );
});

test('an owner that passes the head, leaves the queue without the lock, or stays in it is found', () => {
  const passed = [...alone('a'), ...join('b'), ...leave, ...alone('c'), ...leave, ...enter('b')];
  expect(fairOrder(passed, 'lk').violations).toEqual(['c was granted the lock before b']);
  const lost = [...alone('a'), ...join('b'), script, run('LPOP', QUEUE), script];
  expect(fairOrder(lost, 'lk').violations).toEqual(['b left the queue without the lock']);
  expect(fairOrder([...alone('a'), ...join('b')], 'lk').violations).toEqual(['still queued: b']);
});

test('the referee finds overlapping owners and tokens that do not increase', async () => {
  const referee = await Referee.start(2);
  const socket: Socket = connect(referee.port, '127.0.0.1');
  await once(socket, 'connect');
  const tell = async (request: Record<string, unknown>): Promise<void> => {
    socket.write(`${JSON.stringify({ id: 1, name: 'contest', ...request })}\n`);
    await once(socket, 'data');
  };
  const section = (who: string, mode: string, token = 0): Promise<void> =>
    tell({ op: 'enter', who, mode, owner: who, token });
  await section('a', 'exclusive', 7);
  await section('b', 'shared');
  await tell({ op: 'leave', who: 'a' });
  await section('c', 'shared');
  await section('d', 'exclusive', 7);
  for (const who of ['b', 'c', 'd']) await tell({ op: 'leave', who });
  for (const who of ['e', 'f', 'g']) await section(who, 'permit');
  expect(referee.violations).toEqual([
    'b (shared) entered beside a',
    'd (exclusive) entered beside b, c',
    'd has token 7 after 7',
    'g (permit) entered beside e, f',
  ]);
  socket.destroy();
  await referee.close();
});
