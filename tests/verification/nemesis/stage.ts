import type { CreateClientOptions } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { keySlot } from '../../../src/redis/cluster-slots.js';
import { RedisCluster } from '../../support/servers/cluster.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import { hasCaughtUp, replicationOf } from '../../support/servers/replication.js';
import { MASTER_NAME, SentinelSetup } from '../../support/servers/sentinel.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import type { WorkerClientOptions } from '../../support/processes/worker-orders.js';
import type { Network } from './network.js';
import { ALLOWED_KEYS } from './refused-flow.js';

export type TopologyName = 'single' | 'cluster' | 'sentinel';

/** The servers of a round, and the operations on all of them. */
export interface Stage {
  readonly servers: readonly RedisServer[];
  /** Some servers are replicas of others, and take over from them. */
  readonly replicated: boolean;
  /**
   * For the client of a process, through its own proxies. `odd`: given a connection instead of a URL, where both go.
   */
  reach(
    network: Network,
    odd: boolean,
    dangerous: NonNullable<WorkerClientOptions['redisOptions']>,
  ): WorkerClientOptions;
  /** For further clients of the process, one for each server that knows nothing of the first. */
  reachOthers(network: Network): WorkerClientOptions[];
  /** How many of a server's databases are used: the further ones by a client for each. */
  readonly databases: number;
  /** For the client of database 1, if it is used. */
  reachElsewhere(network: Network): WorkerClientOptions | undefined;
  /** There are keys that it refuses. */
  readonly refusing: boolean;
  /** A server that keys are on. */
  master(choice: number): Promise<RedisServer>;
  /** The server that has this lock. */
  masterOf(lock: string): Promise<RedisServer>;
  /** A replica takes over; how is up to `choice`, unless it must be planned. Resolves when it has. */
  failover(choice: number, planned: boolean): Promise<void>;
  /** Another server takes over from this one, which is dead or hangs. */
  successorOf(master: RedisServer): Promise<void>;
  /** Takes so long, a third of it with the keys at two servers. */
  moveSlot(lock: string, choice: number, ms: number): Promise<void>;
  /** Resolves when all servers run and agree, with the master of each replica. */
  heal(): Promise<readonly Copy[]>;
  /** For a client of the bench itself, past all proxies. */
  direct(database?: number): CreateClientOptions;
  leftovers(): Promise<{ keys: string[]; channels: string[] }>;
  stop(): Promise<void>;
}

/** A replica, and the master that it had caught up with: it has everything that was written there before `since`. */
interface Copy {
  readonly replica: RedisServer;
  readonly master: RedisServer;
  readonly since: number;
}

/** How many connections are subscribed to a channel of either sort. */
export async function listeners(server: RedisServer, channel: string): Promise<number> {
  const counts = ['NUMSUB', 'SHARDNUMSUB'].map((what) => server.command('PUBSUB', what, channel) as Promise<unknown[]>);
  return (await Promise.all(counts)).reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Runs a command there from a connection of another database. */
export const inDatabase = (server: RedisServer, database: number, name: string, ...args: string[]): Promise<unknown> =>
  database === 0
    ? server.command(name, ...args)
    : server.command(
        'EVAL',
        "redis.call('SELECT', ARGV[1]) return redis.call(unpack(ARGV, 2))",
        0,
        database,
        name,
        ...args,
      );

const USERS = `default on nopass ${ALLOWED_KEYS.join(' ')} &* +@all`;

const CATCH_UP_LIMIT_MS = 30_000;

/** `planned`: no replica takes over on its own, however long a busy machine keeps its master from replying. */
const PATIENT_MS = 20_000;

/** `alone`: so many single servers; RedLocks are kept at all of them, everything else at the first. */
export async function openStage(topology: TopologyName, planned: boolean, alone: number): Promise<Stage> {
  if (topology === 'cluster')
    return new ClusterStage(await RedisCluster.start(planned ? { nodeTimeoutMs: PATIENT_MS } : {}));
  if (topology === 'sentinel') return new SentinelStage(await SentinelSetup.start());
  return new SingleStage(await Promise.all(Array.from({ length: alone }, () => startServer({ users: [USERS] }))));
}

const nothing = (): undefined => undefined;
const none = (): WorkerClientOptions[] => [];
const impossible = (): Promise<never> => Promise.reject(new Error('a single server has none of that'));

class SingleStage implements Stage {
  readonly replicated = false;
  readonly databases = 2;
  readonly refusing = true;
  readonly failover = impossible;
  readonly successorOf = impossible;
  readonly moveSlot = impossible;

  constructor(readonly servers: readonly RedisServer[]) {}

  get #first(): RedisServer {
    return this.servers[0] as RedisServer;
  }

  reach({ proxies }: Network, odd: boolean, dangerous: object): WorkerClientOptions {
    const { url, host, port } = proxies[0]!;
    return odd ? { redisOptions: { ...dangerous, host, port } } : { url };
  }

  reachOthers({ proxies }: Network): WorkerClientOptions[] {
    return proxies.slice(1).map(({ url }) => ({ url }));
  }

  direct(database = 0): CreateClientOptions {
    return { url: `${this.#first.url}/${database}` };
  }

  reachElsewhere({ proxies }: Network): WorkerClientOptions {
    return { url: `${proxies[0]!.url}/1` };
  }

  master(choice: number): Promise<RedisServer> {
    return Promise.resolve(this.servers[Math.floor(choice * this.servers.length)] as RedisServer);
  }

  masterOf(): Promise<RedisServer> {
    return Promise.resolve(this.#first);
  }

  heal(): Promise<readonly Copy[]> {
    return Promise.resolve([]);
  }

  async leftovers(): Promise<{ keys: string[]; channels: string[] }> {
    const keys = await Promise.all(
      this.servers.flatMap((server) => [server.keys(), inDatabase(server, 1, 'KEYS', '*') as Promise<string[]>]),
    );
    const channels = await Promise.all(this.servers.map((server) => server.channels()));
    return { keys: keys.flat(), channels: channels.flat() };
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

async function copiesAmong(servers: readonly RedisServer[]): Promise<Copy[]> {
  const copies: Copy[] = [];
  for (const replica of servers) {
    await until(
      async () => {
        const { masterPort } = await replicationOf(replica);
        const master = servers.find(({ port }) => port === masterPort);
        if (master === undefined) return masterPort === undefined;
        const since = stamp();
        if (!(await hasCaughtUp(replica, master))) return false;
        copies.push({ replica, master, since });
        return true;
      },
      'a replica is in step',
      CATCH_UP_LIMIT_MS,
    );
  }
  return copies;
}

/** The moved keys of a migrating slot: the key of the lock, its other keys, or all keys. */
const FIRST_TO_MOVE: readonly ((key: string, lock: string) => boolean)[] = [
  (key, lock) => key === lock,
  (key, lock) => key !== lock,
  () => true,
];

class ClusterStage implements Stage {
  readonly replicated = true;
  readonly databases = 1;
  readonly refusing = false;
  readonly reachElsewhere = nothing;
  readonly servers: readonly RedisServer[];

  constructor(private readonly cluster: RedisCluster) {
    this.servers = cluster.servers;
  }

  reach(network: Network): WorkerClientOptions {
    const natMap = this.#natMap(network);
    return { cluster: { nodes: Object.values(natMap), natMap } };
  }

  readonly reachOthers = none;

  direct(): CreateClientOptions {
    return { redis: this.cluster.connection() };
  }

  #natMap(network: Network): Record<string, { host: string; port: number }> {
    return network.natMap(this.servers);
  }

  async master(choice: number): Promise<RedisServer> {
    const masters = await this.cluster.masters();
    return masters[Math.floor(choice * masters.length)]!;
  }

  async masterOf(lock: string): Promise<RedisServer> {
    return (await this.cluster.shardOf(lock)).master;
  }

  async failover(choice: number, planned: boolean): Promise<void> {
    const modes = [undefined, 'FORCE', 'TAKEOVER'] as const;
    const mode = planned ? undefined : modes[Math.floor(choice * modes.length)];
    await this.cluster.failover(await this.master((choice * 7) % 1), mode);
  }

  async successorOf(master: RedisServer): Promise<void> {
    // The running servers report that it no longer owns slots.
    const asked = this.servers.find((server) => server !== master && server.running)!;
    for (;;) {
      const ranges = (await asked.command('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
      if (ranges.every(([, , [, port]]) => port !== master.port)) return;
      await pause(50);
    }
  }

  async moveSlot(lock: string, choice: number, ms: number): Promise<void> {
    const from = await this.masterOf(lock);
    const others = (await this.cluster.masters()).filter((server) => server !== from);
    const move = await this.cluster.beginMove(keySlot(lock), others[Math.floor(choice * others.length)]!);
    await pause(ms / 3);
    const first = FIRST_TO_MOVE[Math.floor(((choice * 5) % 1) * FIRST_TO_MOVE.length)]!;
    await move.moveKeys((key) => first(key, lock));
    await pause(ms / 3);
    await move.moveKeys();
    await pause(ms / 3);
    await move.finish();
  }

  async heal(): Promise<readonly Copy[]> {
    await this.cluster.heal();
    return copiesAmong(this.servers);
  }

  leftovers(): Promise<{ keys: string[]; channels: string[] }> {
    return this.cluster.leftovers();
  }

  stop(): Promise<void> {
    return this.cluster.stop();
  }
}

class SentinelStage implements Stage {
  readonly replicated = true;
  readonly databases = 1;
  readonly refusing = false;
  readonly reachElsewhere = nothing;
  readonly servers: readonly RedisServer[];
  readonly moveSlot = impossible;

  constructor(private readonly setup: SentinelSetup) {
    this.servers = setup.servers;
  }

  readonly reachOthers = none;

  direct(): CreateClientOptions {
    return { redis: this.setup.connection() };
  }

  reach(network: Network, odd: boolean, dangerous: object): WorkerClientOptions {
    const sentinels = this.setup.sentinels.map(({ address }) => address);
    const natMap = network.natMap(this.servers);
    return { redisOptions: { ...(odd && dangerous), name: MASTER_NAME, sentinels, natMap } };
  }

  master(): Promise<RedisServer> {
    return this.setup.master();
  }

  masterOf(): Promise<RedisServer> {
    return this.setup.master();
  }

  async failover(): Promise<void> {
    await this.setup.failover();
  }

  async successorOf(master: RedisServer): Promise<void> {
    await this.setup.switchedFrom(master);
  }

  async heal(): Promise<readonly Copy[]> {
    await this.setup.heal();
    return copiesAmong(this.servers);
  }

  async leftovers(): Promise<{ keys: string[]; channels: string[] }> {
    const master = await this.setup.master();
    const channels = (await master.channels()).filter((channel) => !channel.startsWith('__sentinel__'));
    return { keys: await master.keys(), channels };
  }

  stop(): Promise<void> {
    return this.setup.stop();
  }
}
