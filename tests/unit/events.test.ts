import { expect, test } from '@jest/globals';
import { createEvents } from '../../src/events.js';

const waiting = { lockName: 'a', group: undefined, waiters: 1 };
const make = (): ReturnType<typeof createEvents> => createEvents((fn) => fn());

/** Listeners run in a microtask. */
const told = (): Promise<void> => Promise.resolve();

test('`on` returns a function that removes that registration alone', async () => {
  const events = make();
  const heard: number[] = [];
  const listener = (): unknown => heard.push(1);
  const off = events.on('waiting', listener);
  events.on('waiting', listener);
  off();
  off();
  events.emit('waiting', waiting);
  await told();
  expect(heard).toEqual([1]);
});

test('`once` calls its listener once, also if the listener causes the next event', async () => {
  const events = make();
  const heard: string[] = [];
  events.once('waiting', ({ lockName }) => {
    heard.push(lockName);
    events.emit('waiting', { ...waiting, lockName: 'b' });
  });
  events.emit('waiting', waiting);
  await told();
  expect(heard).toEqual(['a']);
  expect(events.hasListener('waiting')).toBe(false);
});

test('`off` and the returned function remove a listener of `once` before its event', async () => {
  const events = make();
  const listener = (): never => {
    throw new Error('called');
  };
  events.once('waiting', listener);
  events.off('waiting', listener);
  events.once('waiting', listener)();
  events.emit('waiting', waiting);
  await told();
  expect(events.hasListener('waiting')).toBe(false);
});

test('a listener runs after the code that emits the event, and no longer once it is removed', async () => {
  const events = make();
  const heard: string[] = [];
  events.on('waiting', ({ lockName }) => heard.push(lockName));
  const off = events.on('waiting', () => heard.push('removed'));
  events.emit('waiting', waiting);
  events.emit('waiting', { ...waiting, lockName: 'b' });
  off();
  expect(heard).toEqual([]);
  await told();
  expect(heard).toEqual(['a', 'b']);
});

test('an unknown type and a listener that is no function are refused', () => {
  const events = make();
  for (const register of [events.on, events.once]) {
    expect(() => register('aquired' as never, () => undefined)).toThrow('one of acquired, notAcquired');
    expect(() => register('waiting', undefined as never)).toThrow('a function');
  }
});
