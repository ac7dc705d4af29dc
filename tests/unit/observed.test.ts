import { afterEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isAnyObserved, isObserved } from '../../src/redis/connections/observed.js';

const redis = new Redis({ lazyConnect: true });
type SendCommand = Redis['sendCommand'];
const own = Object.getOwnPropertyDescriptor(Redis.prototype, 'sendCommand')!.value as SendCommand;

afterEach(() => {
  Redis.prototype.sendCommand = own;
  Reflect.deleteProperty(redis, 'sendCommand');
});

const wrapped = (original: SendCommand): SendCommand =>
  function (this: Redis, ...args: Parameters<SendCommand>) {
    return original.apply(this, args);
  };

/** The method after the rewrite by an agent that changes the text of a package at load time. */
const rewritten = (): SendCommand =>
  function (this: { commandQueue: unknown[] }, command: unknown) {
    const traced = (): number => this.commandQueue.push(command);
    const channel = { start: { runStores: (_context: unknown, fn: () => number) => fn() } };
    return channel.start.runStores({}, traced);
  };

const WAYS: Record<string, () => SendCommand> = {
  'a function around it': () => wrapped(own),
  'a function with its name and length': () =>
    Object.defineProperties(wrapped(own), { name: { value: 'sendCommand' }, length: { value: 2 } }),
  'a bound function': () => own.bind(redis),
  'a proxy': () => new Proxy(own, {}),
  'its rewritten text': rewritten,
};

test.each(Object.entries(WAYS))('%s in its place is detected at once, and so is its removal', (_, make) => {
  for (const place of [Redis.prototype, redis]) {
    expect(isObserved(redis)).toBe(false);
    place.sendCommand = make();
    expect([isObserved(redis), isObserved(redis)]).toEqual([true, true]);
    expect(isAnyObserved()).toBe(place === Redis.prototype);
    if (place === redis) Reflect.deleteProperty(redis, 'sendCommand');
    else place.sendCommand = own;
    expect(isObserved(redis)).toBe(false);
  }
});

test.each(['start', 'end', 'asyncStart', 'asyncEnd', 'error'])('listeners for %s are counted', (event) => {
  const listener = (): void => undefined;
  subscribe(`tracing:ioredis:command:${event}`, listener);
  expect(isObserved(redis)).toBe(true);
  unsubscribe(`tracing:ioredis:command:${event}`, listener);
  expect(isObserved(redis)).toBe(false);
});
