import { afterEach, expect, test } from '@jest/globals';
import { doctor } from '../../../src/client/doctor.js';
import { LockError } from '../../../src/errors.js';
import { closeClients, openClient, openProxy } from '../../support/clients/lock-clients.js';
import { admin, freshName, leavesKeys } from '../../support/redis.js';

leavesKeys('a lock that no client made');
afterEach(closeClients);

const LIES = [
  ':5\r\n',
  '$-1\r\n',
  '*-1\r\n',
  '*0\r\n',
  '+\x1b[2J\r\n',
  '*2\r\n:1\r\n:2\r\n',
  '*1\r\n*-1\r\n',
  '*2\r\n$1\r\n0\r\n*1\r\n$-1\r\n',
  '*1\r\n*6\r\n$4\r\nhash\r\n:1\r\n:7\r\n:7\r\n:7\r\n:7\r\n',
];

test.each(['SCAN', 'EVALSHA', 'PUBSUB', 'CLIENT', 'INFO', 'TIME'])(
  'whatever a server replies to %s, list(), inspect() and doctor() resolve or reject with an error of their own',
  async (command) => {
    const name = freshName();
    await admin().hset(name, '8743c9c0-0795-4907-87fd-6c719a6b4586:52', '1');
    const { proxy, url } = await openProxy();
    const client = await openClient({ url });
    const list = async (): Promise<void> => {
      for await (const _ of client.list());
    };
    for (const lie of LIES) {
      const fault = proxy.answer({ command, times: Infinity }, lie);
      const inspect = () => client.inspect(name, { processes: true });
      for (const call of [list, inspect, () => doctor(client, { probes: false })]) {
        const error: unknown = await call().then(
          () => undefined,
          (reason: unknown) => reason,
        );
        if (error === undefined) continue;
        expect(error).toBeInstanceOf(LockError);
        expect((error as LockError).message).not.toMatch(/\p{Cc}/u);
      }
      fault.lift();
    }
  },
);
