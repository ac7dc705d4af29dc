import { randomBytes } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { hasCaughtUp, replicationOf } from './replication.js';
import { startServer, type RedisServer, type ServerAddress, type ServerOptions } from './servers.js';
import { until } from '../time/until.js';

export const MASTER_NAME = 'locks';
const LIMIT_MS = 30_000;

export interface SentinelSettings {
  replicas?: number;
  sentinels?: number;
  /** ms after which a silent master counts as down. */
  downAfterMs?: number;
  /** Options of master and replicas. */
  server?: ServerOptions;
}

/** A master with replicas, watched by real sentinels. */
export class SentinelSetup {
  private constructor(
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly RedisServer[],
  ) {}

  static async start({
    replicas = 2,
    sentinels = 3,
    downAfterMs = 1_000,
    server = {},
  }: SentinelSettings = {}): Promise<SentinelSetup> {
    const master = await startServer(server);
    const others = await Promise.all(
      Array.from({ length: replicas }, () => startServer({ ...server, replicaOf: master.address })),
    );
    const watching = await Promise.all(
      Array.from({ length: sentinels }, () =>
        startServer({
          sentinel: true,
          config: {
            // Started again it is the same one: Redis 6.0 goes on counting one that comes back under another name
            // twice.
            'sentinel myid': randomBytes(20).toString('hex'),
            'sentinel monitor': `${MASTER_NAME} ${master.host} ${master.port} ${Math.floor(sentinels / 2) + 1}`,
            'sentinel down-after-milliseconds': `${MASTER_NAME} ${downAfterMs}`,
            'sentinel failover-timeout': `${MASTER_NAME} 3000`,
            'sentinel parallel-syncs': `${MASTER_NAME} 2`,
          },
        }),
      ),
    );
    const setup = new SentinelSetup([master, ...others], watching);
    await setup.settled();
    return setup;
  }

  /** Every sentinel that runs knows all the others and a master with all its running replicas in step. */
  async settled(): Promise<void> {
    for (const sentinel of this.sentinels) {
      await until(
        async () => {
          const state = (await sentinel.command('SENTINEL', 'MASTER', MASTER_NAME)) as string[];
          const value = (name: string): string => state[state.indexOf(name) + 1] ?? '';
          return (
            value('flags') === 'master' &&
            Number(value('num-other-sentinels')) === this.sentinels.length - 1 &&
            Number(value('num-slaves')) >= this.servers.length - 1
          );
        },
        'the sentinels know each other and the replicas',
        LIMIT_MS,
      );
    }
    const master = await this.master();
    await until(
      async () => {
        for (const server of this.servers) {
          const { masterPort } = await replicationOf(server);
          if (masterPort !== (server === master ? undefined : master.port)) return false;
          if (server !== master && !(await hasCaughtUp(server, master))) return false;
        }
        return true;
      },
      'every replica follows the master and is in step',
      LIMIT_MS,
    );
  }

  /** By the word of a sentinel. */
  async master(sentinel = this.sentinels[0] as RedisServer): Promise<RedisServer> {
    const [, port] = (await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME)) as [string, string];
    const master = this.servers.find((server) => server.port === Number(port));
    if (master === undefined)
      throw new Error(`the sentinels name a master that this bench does not know: port ${port}`);
    return master;
  }

  /** Resolves with the new master when every sentinel names it. */
  async switchedFrom(old: RedisServer, limitMs = LIMIT_MS): Promise<RedisServer> {
    const answering = this.sentinels.filter(({ stopped }) => !stopped);
    for (const sentinel of answering) {
      await until(
        async () => {
          const reply = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME);
          return Number((reply as [string, string])[1]) !== old.port;
        },
        'the sentinels name another master',
        limitMs,
      );
    }
    return this.master(answering[0]);
  }

  async failover(): Promise<RedisServer> {
    const old = await this.master();
    const asks = 3;
    for (let asked = 1; ; asked += 1) {
      await until(
        async () =>
          (await (this.sentinels[0] as RedisServer).command('SENTINEL', 'FAILOVER', MASTER_NAME).catch(() => '')) ===
          'OK',
        'a sentinel begins a failover',
        LIMIT_MS,
      );
      try {
        return await this.switchedFrom(old, LIMIT_MS / asks);
      } catch (error) {
        // It gives up when the replica that it chose does not become a master in time.
        if (asked === asks) throw error;
      }
    }
  }

  /** A connection of the user's, for `createClient`; it connects only when it is used. */
  connection(options: RedisOptions = {}, sentinels: readonly ServerAddress[] = this.sentinels): Redis {
    return new Redis({
      ...options,
      lazyConnect: true,
      name: MASTER_NAME,
      sentinels: sentinels.map(({ host, port }) => ({ host, port })),
      replyMapping: 'legacy',
    });
  }

  /** Restarts the servers that a test has stopped or killed. */
  async heal(): Promise<void> {
    for (const server of [...this.servers, ...this.sentinels]) {
      if (server.running) server.resume();
      else await server.start();
    }
    await this.#demoteOthers();
    await this.settled();
  }

  /** Sentinels do so by themselves, but let a master that has come back go on for 8 s. */
  async #demoteOthers(): Promise<void> {
    await until(
      async () => new Set(await Promise.all(this.sentinels.map((sentinel) => this.master(sentinel)))).size === 1,
      'the sentinels name one master',
      LIMIT_MS,
    );
    const master = await this.master();
    for (const server of this.servers) {
      if (server !== master && String(await server.command('INFO', 'replication')).includes('role:master'))
        await server.replicaOf(master.address);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.servers, ...this.sentinels].map((server) => server.stop()));
  }
}
