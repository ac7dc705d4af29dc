import { afterEach, expect, test } from '@jest/globals';
import { logTo } from '../../src/diagnostics/log.js';
import type { LockError } from '../../src/errors.js';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { closeClients, holdElsewhere, inFlow, openClient } from '../support/clients/lock-clients.js';
import { freshName, leavesKeys } from '../support/redis.js';

leavesKeys('a declared semaphore stays');
afterEach(closeClients);

/** Ends a line, colours text, reverses it, has invisible characters and half of one, and looks like the end of a name. */
const EVIL = 'a\r\nERROR "b"\x1b[31m\u202e\u3164\ufe0f\u034f\u2800\u00a0\\';
const SHOWN = 'a\\r\\nERROR \\"b\\"\\u{1b}[31m\\u{202e}\\u{3164}\\u{fe0f}\\u{34f}\\u{2800}\\u{a0}\\\\';
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\u00a0]/u;

type Failure = LockError & { readonly lockName?: string };

async function failure(call: () => Promise<unknown>): Promise<Failure> {
  try {
    await call();
  } catch (error) {
    return error as Failure;
  }
  throw new Error('the call succeeded');
}

/** Calls that fail, each with an error that names the lock. */
const FAILURES: Readonly<Record<string, (client: LockClient, name: string) => Promise<Failure>>> = {
  ERR_LOCK_TIMEOUT: async (client, name) => {
    const held = await holdElsewhere(client.getLock(name));
    const error = await failure(() => inFlow(() => client.getLock(name).acquire({ waitTime: 1 })));
    await held.release();
    return error;
  },
  ERR_LOCK_ABORTED: async (client, name) => {
    const held = await holdElsewhere(client.getLock(name));
    const signal = AbortSignal.timeout(1);
    const error = await failure(() => inFlow(() => client.getLock(name).acquire({ signal })));
    await held.release();
    return error;
  },
  ERR_LOCK_NOT_OWNER: (client, name) => failure(() => client.getLock(name).unlock()),
  ERR_LOCK_LOST: async (client, name) => {
    const held = await holdElsewhere(client.getLock(name));
    await client.getLock(name).forceUnlock();
    return failure(() => held.release());
  },
  ERR_LOCK_NON_REENTRANT: (client, name) => {
    const lock = client.getNonReentrantLock(name);
    return failure(() => inFlow(() => lock.withLock(() => lock.acquire())));
  },
  ERR_LOCK_UPGRADE: (client, name) => {
    const lock = client.getReadWriteLock(name);
    return failure(() => inFlow(() => lock.readLock().withLock(() => lock.writeLock().acquire())));
  },
  ERR_LOCK_UNKNOWN_PERMIT: (client, name) =>
    failure(() => client.getPermitExpirableSemaphore(name, { permits: 1 }).release('\x1b[2J'.repeat(1_000))),
  ERR_LOCK_INVALID_ARGUMENT: (client, name) =>
    failure(async () => client.getMultiLock(client.getLock(name), client.getFairLock(name))),
  ERR_LOCK_NO_QUORUM: async (client, name) => {
    const away = createClient({ url: 'redis://127.0.0.1:1', commandTimeout: 60 });
    const [here, there] = [client.getLock(name), away.getLock(name)];
    const error = await failure(() => inFlow(() => client.getRedLock(here, there).acquire({ waitTime: 1 })));
    await away.close();
    return error;
  },
};

test.each(Object.entries(FAILURES))(
  '%s: the message shows the whole name on one line, and is not long',
  async (code, fail) => {
    const client = await openClient();
    const name = freshName(EVIL);
    const error = await fail(client, name);
    expect(error.code).toBe(code);
    expect(error.message).not.toMatch(HIDDEN);
    expect(error.message).toContain(SHOWN);
    if (error.lockName !== undefined) expect(error.lockName).toContain(name);
    const long = await fail(client, freshName('\u202e'.repeat(100_000)));
    expect(long.message.length).toBeLessThan(5_000);
  },
);

test('log lines show the whole name on one line, and the entry has the name itself', async () => {
  const lines: [message: string, fields: { lockName: string }][] = [];
  const line = (...entry: (typeof lines)[number]): void => void lines.push(entry);
  const client = await openClient();
  logTo(client, { error: line, warn: line, debug: line });
  const names = [freshName(EVIL), freshName('x'.repeat(100_000))];
  for (const name of names) {
    const held = await holdElsewhere(client.getLock(name));
    await client.forceUnlock(name, { ifOwner: held.owner, by: EVIL });
    await failure(() => held.release());
  }
  expect(lines.length).toBeGreaterThanOrEqual(6);
  for (const [message, { lockName }] of lines) {
    expect(message).not.toMatch(HIDDEN);
    expect(message.length).toBeLessThan(2_000);
    expect(names).toContain(lockName);
    if (lockName === names[0]) expect(message).toContain(SHOWN);
  }
});
