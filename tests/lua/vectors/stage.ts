import { Cluster, type Redis } from 'ioredis';
import type { CreateClientOptions } from '../../../src/client/create-client.js';
import type { MonitorLog } from '../../support/servers/monitor-log.js';
import { FaultProxy } from '../../support/proxy/proxy.js';
import { Published, type Message } from '../../support/clients/published.js';
import { admin, testRedisUrl } from '../../support/redis.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import type { Scenario } from './recording.js';

export interface Messages {
  /** Since the last call. */
  take(): Promise<readonly Message[]>;
  close(): void | Promise<void>;
}

/** The surroundings of a recorded scenario: the servers, and the connection of each client to them. */
export interface Stage {
  readonly admin: Redis;
  /** For `createClient`, which still has to be made. */
  way(label: string): CreateClientOptions;
  /** Everything that is published on channels that contain `name`. */
  listen(name: string): Promise<Messages>;
  /**
   * Faults for the next scripts of this client. In the recording the connection was silent for a while before it was
   * cut. Both sides know the same in either case.
   */
  loseReplies(label: string, times: number): void;
  close(): Promise<void>;
}

export async function openStage({ settings, steps }: Scenario): Promise<Stage> {
  const calls = (object: string, word?: string): boolean =>
    steps.some(({ call }) => call.object === object && (word === undefined || call.args[0] === word));
  if (settings.mode === 'cluster') return clusterStage();
  if (settings.mode === 'replica') return replicaStage(settings.clients);
  if (calls('redis', 'SCRIPT')) return ownStage(await startServer());
  if (!calls('proxy'))
    return {
      admin: admin(),
      way: () => ({ url: testRedisUrl() }),
      listen: (name) => Published.on(name),
      loseReplies: () => undefined,
      close: () => Promise.resolve(),
    };
  const { hostname, port, pathname } = new URL(testRedisUrl());
  const ways = await proxied(settings.clients, { host: hostname, port: Number(port) }, pathname);
  return { ...ways, admin: admin(), listen: (name) => Published.on(name) };
}

/** Each client has its own proxy. */
async function proxied(
  labels: readonly string[],
  address: { host: string; port: number },
  path = '',
): Promise<Pick<Stage, 'way' | 'loseReplies' | 'close'>> {
  const proxies = new Map<string, FaultProxy>();
  const struck: Promise<void>[] = [];
  for (const label of labels) proxies.set(label, await FaultProxy.start(address));
  return {
    way: (label) => ({ url: proxies.get(label)!.url + path }),
    loseReplies: (label, times) =>
      void struck.push(proxies.get(label)!.cutAfter({ command: 'EVALSHA', times }).appliedTimes(times)),
    async close() {
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
      await Promise.all(struck); // a loss that did not happen is an error
    },
  };
}

function ownStage(server: RedisServer): Stage {
  return {
    admin: server.admin,
    way: () => ({ url: server.url }),
    listen: (name) => MonitoredMessages.on(server, name),
    loseReplies: () => undefined,
    close: () => server.stop(),
  };
}

async function clusterStage(): Promise<Stage> {
  const server = await startServer({ loneMaster: true });
  const way = (): CreateClientOptions => ({
    redis: new Cluster([server.address], { lazyConnect: true, redisOptions: { replyMapping: 'legacy' } }),
  });
  return { ...ownStage(server), way };
}

async function replicaStage(labels: readonly string[]): Promise<Stage> {
  const server = await startServer({ loneMaster: false });
  const replica = await startServer({ replicaOf: server.address });
  await until(async () => (await server.command('WAIT', 1, 1_000)) === 1, 'the replica is in step');
  const ways = await proxied(labels, server.address);
  return {
    ...ownStage(server),
    ...ways,
    way: (label) => ({ ...ways.way(label), replicas: { acks: 1, timeout: 1_000 } }),
    close: async () => {
      await Promise.all([server.stop(), replica.stop()]);
      await ways.close();
    },
  };
}

/** Messages of both kinds: no pattern matches those of the slots of a cluster. */
class MonitoredMessages implements Messages {
  #read = 0;

  private constructor(
    private readonly log: MonitorLog,
    private readonly name: string,
  ) {}

  static async on(server: RedisServer, name: string): Promise<MonitoredMessages> {
    return new MonitoredMessages(await server.monitor(), name);
  }

  async take(): Promise<readonly Message[]> {
    const lines = (await this.log.settle()).slice(this.#read);
    this.#read += lines.length;
    return lines
      .filter(({ command, args }) => /^S?PUBLISH$/.test(command) && args[0]?.includes(this.name))
      .map(({ args: [channel = '', payload = ''] }) => ({ channel, payload }));
  }

  close(): void {
    this.log.stop();
  }
}
