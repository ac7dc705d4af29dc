import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import type { ClientOptions } from '../../../src/options.js';
import { RedisCluster } from '../servers/cluster.js';
import { natMapOf } from './nat-map.js';
import { FaultProxy } from './proxy.js';
import { until } from '../time/until.js';

/** The cluster of a test file. Each node is behind a proxy that sees all its requests, and clients use the proxies. */
export class ProxiedCluster {
  readonly proxies: FaultProxy[] = [];
  readonly #clients: LockClient[] = [];
  #cluster: RedisCluster | undefined;

  /** To be called outside of tests. */
  constructor() {
    beforeAll(async () => {
      this.#cluster = await RedisCluster.start({ masters: 3, replicas: 0 });
      for (const server of this.cluster.servers) this.proxies.push(await FaultProxy.start(server.address));
    }, 60_000);
    afterEach(async () => {
      for (const proxy of this.proxies) proxy.lift();
      await Promise.all(this.#clients.splice(0).map((client) => client.close({ releaseHolds: true })));
      await until(async () => (await this.cluster.leftovers()).keys.length === 0, 'no key is left');
    });
    afterAll(async () => {
      await Promise.all(this.proxies.map((proxy) => proxy.close()));
      await this.#cluster?.stop();
    });
  }

  get cluster(): RedisCluster {
    if (this.#cluster === undefined) throw new Error('the cluster is not there yet');
    return this.#cluster;
  }

  open(options: ClientOptions = {}): LockClient {
    const natMap = natMapOf(this.cluster.servers, this.proxies);
    const client = createClient({ redis: this.cluster.connection({ natMap }), ...options });
    this.#clients.push(client);
    return client;
  }
}
