import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { createClient, type CreateClientOptions, type LockClient } from '../../../src/client/create-client.js';
import { RedisCluster, type ClusterSettings } from '../servers/cluster.js';
import type { RedisServer } from '../servers/servers.js';
import { until } from '../time/until.js';

const LIMIT_MS = 60_000;

/** The cluster of a test file and its clients; after each test the cluster is whole again, and nothing is left in it. */
export class ClusterClients {
  readonly #clients: LockClient[] = [];
  #cluster: RedisCluster | undefined;
  #names = 0;

  /** To be called outside of tests. */
  constructor(settings: ClusterSettings = {}) {
    beforeAll(async () => {
      this.#cluster = await RedisCluster.start(settings);
    }, LIMIT_MS);
    afterAll(() => this.#cluster?.stop());
    afterEach(async () => {
      await this.cluster.heal();
      await Promise.all(this.#clients.splice(0).map((client) => client.close({ releaseHolds: true })));
      await until(async () => {
        const { keys, channels } = await this.cluster.leftovers();
        return keys.length === 0 && channels.length === 0;
      }, 'no key and no channel is left');
    }, LIMIT_MS);
  }

  get cluster(): RedisCluster {
    if (this.#cluster === undefined) throw new Error('the cluster is not there yet');
    return this.#cluster;
  }

  async open(options: Partial<CreateClientOptions> = {}): Promise<LockClient> {
    const given = { redis: this.cluster.connection(), lockWatchdogTimeout: 3_000, ...options } as CreateClientOptions;
    const client = createClient(given);
    this.#clients.push(client);
    await client.ready();
    return client;
  }

  freshName(label: string): string {
    this.#names += 1;
    return `${label}:${this.#names}`;
  }

  async otherMaster(than: RedisServer): Promise<RedisServer> {
    return (await this.cluster.masters()).find((server) => server !== than) as RedisServer;
  }
}
