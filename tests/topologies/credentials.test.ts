import { afterEach, expect, test } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { createClient, type CreateClientOptions, type LockClient } from '../../src/client/create-client.js';
import { inFlow } from '../support/clients/lock-clients.js';
import { RedisCluster } from '../support/servers/cluster.js';
import { SentinelSetup } from '../support/servers/sentinel.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { until } from '../support/time/until.js';
import { expectNoOverlap } from '../support/serious.js';

const USER = 'app';
const server = { users: [`${USER} on >word-0 ~* &* +@all`] };
const clients: LockClient[] = [];
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
  for (const stop of stops.splice(0)) await stop();
}, 60_000);

interface Setup {
  readonly servers: readonly RedisServer[];
  connection(): CreateClientOptions['redis'];
}

const setups: Record<string, () => Promise<Setup>> = {
  'one server': async () => {
    const only = await startServer(server);
    stops.push(() => only.stop());
    const { host, port } = only.address;
    return { servers: [only], connection: () => ({ socket: { host, port } }) };
  },
  Sentinel: async () => {
    const setup = await SentinelSetup.start({ replicas: 1, server });
    stops.push(() => setup.stop());
    return { servers: setup.servers, connection: () => setup.connection() };
  },
  'a cluster': async () => {
    const cluster = await RedisCluster.start({ replicas: 0, server });
    stops.push(() => cluster.stop());
    return { servers: cluster.servers, connection: () => cluster.connection() };
  },
};

test.each<[string, (login: object) => Promise<{ servers: readonly RedisServer[]; redis: Redis | Cluster }>]>([
  [
    'Sentinel',
    async (login) => {
      const setup = await SentinelSetup.start({ replicas: 1, sentinels: 1, server });
      stops.push(() => setup.stop());
      return { servers: setup.servers, redis: setup.connection(login) };
    },
  ],
  [
    'a cluster',
    async (login) => {
      const cluster = await RedisCluster.start({ replicas: 0, server });
      stops.push(() => cluster.stop());
      return { servers: cluster.servers, redis: cluster.connection({}, login) };
    },
  ],
])(
  '%s: a changed password in the options of a given connection is used for each new connection',
  async (_, start) => {
    const { servers, redis } = await start({ username: USER, password: 'word-0' });
    const client = createClient({ redis });
    clients.push(client);
    const use = async (): Promise<void> => {
      // Names of several slots, so that each node of a cluster has some.
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
        expect(await client.getLock(name).withLock({ waitTime: 20_000 }, () => name)).toBe(name);
    };
    await use();
    const options = redis.isCluster ? (redis as Cluster).options.redisOptions! : (redis as Redis).options;
    options.password = 'word-1';
    for (const each of servers) {
      await each.command('ACL', 'SETUSER', USER, 'resetpass', '>word-1');
      await each.command('CLIENT', 'KILL', 'USER', USER);
    }
    await use();
    for (const each of redis.isCluster ? servers : servers.slice(0, 1))
      expect(String(await each.command('CLIENT', 'LIST'))).toContain(`user=${USER}`);
  },
  60_000,
);

test.each(Object.keys(setups))(
  '%s: passwords are changed under load, and no call fails',
  async (topology) => {
    const { servers, connection } = await setups[topology]!();
    let password = 'word-0';
    const open = (): LockClient => {
      const credentials = async () => ({ username: USER, password, expiresIn: 1_500 });
      const client = createClient({ redis: connection(), credentials } as CreateClientOptions);
      clients.push(client);
      return client;
    };
    const both = [open(), open()];
    const inside = new Map<string, number>();
    let sections = 0;
    let overlaps = 0;
    let over = false;
    const flow = async (client: LockClient, name: string): Promise<void> => {
      while (!over) {
        await client.getLock(name).withLock({ waitTime: 20_000 }, async () => {
          if (inside.get(name)) overlaps += 1;
          inside.set(name, 1);
          await new Promise((resume) => setImmediate(resume));
          inside.set(name, 0);
          sections += 1;
        });
      }
    };
    const flows = both.flatMap((client) =>
      ['a', 'b', 'c', 'd'].flatMap((name) => [1, 2].map(() => inFlow(() => flow(client, name)))),
    );
    const failures: unknown[] = [];
    for (const each of flows) each.catch((error: unknown) => failures.push(error));
    const all = (...words: string[]): Promise<unknown> =>
      Promise.all(servers.map((each) => each.command('ACL', 'SETUSER', USER, ...words)));
    for (let round = 1; round <= 3; round++) {
      await progress();
      // As a secret store does it: both are right for a moment.
      await all(`>word-${round}`);
      password = `word-${round}`;
      await all('resetpass', `>word-${round}`);
      await progress();
      for (const each of servers) await each.command('CLIENT', 'KILL', 'USER', USER);
    }
    await progress();
    over = true;
    await Promise.all(flows);
    expectNoOverlap(overlaps);
    expect(failures).toEqual([]);

    async function progress(): Promise<void> {
      const before = sections;
      await until(() => failures.length > 0 || sections >= before + 200, 'sections are entered', 30_000);
      expect(failures).toEqual([]);
    }
  },
  120_000,
);
