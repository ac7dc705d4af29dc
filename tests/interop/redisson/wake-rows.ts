import { ms, type JvmObject } from './jvm.js';

export type Call = readonly [object: JvmObject, method: string, ...args: unknown[]];

/** A waiter waits because of `before`, and is granted after another client has called `opens`. */
interface WakeRow {
  readonly what: string;
  readonly before: readonly Call[];
  readonly waits: Call;
  readonly opens: Call;
  /** By the waiter, at the end. */
  readonly leaves?: Call;
  readonly in?: readonly string[];
  /** The message is `1`. A waiter of Redisson misses it between its last try and its sleep. */
  readonly redissonMisses?: true;
}

const locks = (kind: string, name: string): WakeRow[] => {
  const lock = { kind, name };
  return [
    {
      what: `${kind}: unlock`,
      before: [[lock, 'lock']],
      waits: [lock, 'lock'],
      opens: [lock, 'unlock'],
      leaves: [lock, 'unlock'],
    },
    {
      what: `${kind}: unlock, a waiter with a limit`,
      before: [[lock, 'lock']],
      waits: [lock, 'tryLock', 20_000, ...ms(20_000)],
      opens: [lock, 'unlock'],
      leaves: [lock, 'unlock'],
    },
    {
      what: `${kind}: forceUnlock`,
      before: [[lock, 'lock', ...ms(60_000)]],
      waits: [lock, 'lock'],
      opens: [lock, 'forceUnlock'],
      leaves: [lock, 'unlock'],
    },
  ];
};

/** Stands for the result of the previous call. */
export const LAST = '$last';

/** Every channel, for names that are used once. */
export function wakeRows(name: string): WakeRow[] {
  const read = { kind: 'read', name };
  const write = { kind: 'write', name };
  const semaphore = { kind: 'semaphore', name };
  const expirable = { kind: 'expirable', name };
  const latch = { kind: 'latch', name };
  return [
    ...locks('lock', name),
    ...locks('fenced', name),
    ...locks('fair', name),
    ...locks('non-reentrant-fair', name).map((row) => ({ ...row, in: ['4.7.0'] })),
    ...locks('non-reentrant', name).map((row) => ({ ...row, in: ['4.7.0'] })),
    {
      what: 'read-write: a writer leaves',
      before: [[write, 'lock']],
      waits: [read, 'lock'],
      opens: [write, 'unlock'],
      leaves: [read, 'unlock'],
      redissonMisses: true,
    },
    {
      what: 'read-write: the last reader leaves',
      before: [[read, 'lock']],
      waits: [write, 'lock'],
      opens: [read, 'unlock'],
      leaves: [write, 'unlock'],
    },
    {
      what: 'read-write: a writer after a writer',
      before: [[write, 'lock']],
      waits: [write, 'lock'],
      opens: [write, 'unlock'],
      leaves: [write, 'unlock'],
      redissonMisses: true,
    },
    {
      what: 'read-write: a writer is forced out',
      before: [[write, 'lock', ...ms(60_000)]],
      waits: [read, 'lock'],
      opens: [write, 'forceUnlock'],
      leaves: [read, 'unlock'],
      redissonMisses: true,
    },
    {
      what: 'semaphore: release',
      before: [
        [semaphore, 'trySetPermits', 1],
        [semaphore, 'acquire'],
      ],
      waits: [semaphore, 'acquire'],
      opens: [semaphore, 'release'],
      leaves: [semaphore, 'drainPermits'],
    },
    {
      what: 'semaphore: release of several, one by one',
      before: [[semaphore, 'trySetPermits', 1]],
      waits: [semaphore, 'acquire', 2],
      opens: [semaphore, 'release'],
      leaves: [semaphore, 'drainPermits'],
    },
    {
      what: 'semaphore: addPermits',
      before: [],
      waits: [semaphore, 'acquire'],
      opens: [semaphore, 'addPermits', 1],
      leaves: [semaphore, 'drainPermits'],
    },
    {
      what: 'semaphore: trySetPermits',
      before: [],
      waits: [semaphore, 'tryAcquire', 1, ...ms(20_000)],
      opens: [semaphore, 'trySetPermits', 1],
      leaves: [semaphore, 'drainPermits'],
    },
    {
      what: 'permit-expirable semaphore: release',
      before: [
        [expirable, 'trySetPermits', 1],
        [expirable, 'acquire'],
      ],
      waits: [expirable, 'acquire'],
      opens: [expirable, 'release', LAST],
    },
    {
      what: 'permit-expirable semaphore: addPermits',
      before: [],
      waits: [expirable, 'tryAcquire', 20_000, ...ms(20_000)],
      opens: [expirable, 'addPermits', 1],
    },
    {
      what: 'permit-expirable semaphore: setPermits',
      before: [],
      waits: [expirable, 'acquire'],
      opens: [expirable, 'setPermits', 1],
    },
    {
      what: 'latch: countDown to 0',
      before: [[latch, 'trySetCount', 1]],
      waits: [latch, 'await'],
      opens: [latch, 'countDown'],
    },
    {
      what: 'latch: countDown to 0, a waiter with a limit',
      before: [[latch, 'trySetCount', 1]],
      waits: [latch, 'await', ...ms(20_000)],
      opens: [latch, 'countDown'],
    },
  ];
}
