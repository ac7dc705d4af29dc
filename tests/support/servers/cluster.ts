import { Cluster, type ClusterOptions, type RedisOptions } from 'ioredis';
import { keySlot } from '../../../src/redis/cluster-slots.js';
import { freePort } from './free-port.js';
import { hasCaughtUp, replicationOf } from './replication.js';
import { serverMajor } from './server-version.js';
import { startServer, type RedisServer, type ServerAddress, type ServerOptions } from './servers.js';
import type { TlsFiles } from './tls.js';
import { until } from '../time/until.js';

const SLOTS = 16_384;
const FORMED_LIMIT_MS = 30_000;
/** Interval, by the clock of Redis, at which nodes exchange their state. */
const GOSSIP_MS = 1_000;
const pause = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

export interface ClusterSettings {
  masters?: number;
  replicas?: number;
  /** The first master has all slots but one for each other. */
  lopsided?: boolean;
  /** ms after which a silent node counts as dead; a failover takes a little longer. */
  nodeTimeoutMs?: number;
  /** Options of every node. */
  server?: ServerOptions;
  /** Nodes talk TLS to each other and to clients; the bench itself goes on without. */
  tls?: TlsFiles;
}

/** A real cluster of redis-servers on the loopback. */
export class RedisCluster {
  readonly #servers: RedisServer[] = [];
  readonly #tlsPorts = new Map<RedisServer, number>();

  private constructor(
    private readonly options: ServerOptions,
    private readonly tls: TlsFiles | undefined,
  ) {}

  get servers(): readonly RedisServer[] {
    return this.#servers;
  }

  static async start({
    masters = 3,
    replicas = 1,
    lopsided = false,
    nodeTimeoutMs = 1_000,
    server = {},
    tls,
  }: ClusterSettings = {}): Promise<RedisCluster> {
    const options: ServerOptions = {
      ...server,
      config: {
        'cluster-enabled': 'yes',
        'cluster-node-timeout': String(nodeTimeoutMs),
        'cluster-replica-validity-factor': '0',
        'cluster-migration-barrier': '10',
        // Healthy shards reply while another shard has no node.
        'cluster-require-full-coverage': 'no',
        'repl-timeout': '5',
        ...server.config,
      },
    };
    const cluster = new RedisCluster(options, tls);
    const started = await Promise.allSettled(
      Array.from({ length: masters * (1 + replicas) }, () => cluster.#startNode()),
    );
    cluster.#servers.push(...started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
    try {
      const failed = started.find((each) => each.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      await cluster.#form(masters, lopsided);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async #startNode(): Promise<RedisServer> {
    if (this.tls === undefined) return startServer(this.options);
    const port = await freePort();
    const config = { 'tls-port': String(port), 'tls-cluster': 'yes', 'tls-replication': 'yes', ...this.tls.config };
    const server = await startServer({ ...this.options, config: { ...this.options.config, ...config } });
    this.#tlsPorts.set(server, port);
    return server;
  }

  async #form(masters: number, lopsided: boolean): Promise<void> {
    for (let i = 0; i < masters; i++) {
      const owner = this.servers[i] as RedisServer;
      await owner.command('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
      const [from, to] = [i, i + 1].map((n) => firstSlot(n, masters, lopsided)) as [number, number];
      await owner.command('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from }, (_, at) => from + at));
    }
    for (const server of this.servers.slice(1)) await this.#meet(server);
    await this.#allMet();
    for (let i = masters; i < this.servers.length; i++) {
      const id = await this.idOf(this.servers[i % masters] as RedisServer);
      await (this.servers[i] as RedisServer).command('CLUSTER', 'REPLICATE', id);
    }
    await this.settled();
  }

  async #meet(server: RedisServer): Promise<void> {
    const { host, port } = this.#addressOf(this.servers[0] as RedisServer);
    await server.command('CLUSTER', 'MEET', host, port);
  }

  #allMet(): Promise<void> {
    return this.#agreed('every node knows every other', ({ nodes }) => nodes === this.servers.length);
  }

  /** Where clients find it. */
  #addressOf(server: RedisServer): ServerAddress {
    return { host: server.host, port: this.#tlsPorts.get(server) ?? server.port };
  }

  /** Without slots, and without a replica. */
  async addMaster(): Promise<RedisServer> {
    const server = await this.#startNode();
    await this.#meet(server);
    this.#servers.push(server);
    await this.#allMet();
    await this.settled();
    return server;
  }

  /** Ends a node without slots, and makes the others forget it. */
  async removeNode(server: RedisServer): Promise<void> {
    await this.settled();
    const id = await this.idOf(server);
    this.#servers.splice(this.servers.indexOf(server), 1);
    for (const other of this.servers) await other.command('CLUSTER', 'FORGET', id);
    await server.stop();
    await this.#allMet();
  }

  async #agreed(what: string, fact: (view: { nodes: number; ok: boolean; slots: number }) => boolean): Promise<void> {
    for (const server of this.servers) {
      if (!server.running) continue;
      await until(
        async () => {
          const info = String(await server.command('CLUSTER', 'INFO'));
          const value = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
          return fact({
            nodes: value('cluster_known_nodes'),
            slots: value('cluster_slots_ok'),
            ok: info.includes('cluster_state:ok'),
          });
        },
        what,
        FORMED_LIMIT_MS,
      );
    }
  }

  /** All slots have a master, all nodes say so, and every running replica is in step. */
  async settled(): Promise<void> {
    await this.#agreed('the cluster is whole', ({ ok, slots }) => ok && slots === SLOTS);
    await until(
      async () => {
        const running = this.servers.filter((server) => server.running);
        return new Set(await Promise.all(running.map((server) => this.#owners(server)))).size === 1;
      },
      'all nodes agree on the owners of the slots',
      FORMED_LIMIT_MS,
    );
    await until(
      async () => {
        for (const server of this.servers) {
          if (!server.running) continue;
          const { masterPort } = await replicationOf(server);
          if (masterPort === undefined) continue;
          const master = this.servers.find(({ port, running }) => running && port === masterPort);
          if (master === undefined || !(await hasCaughtUp(server, master))) return false;
        }
        return true;
      },
      'every replica is in step',
      FORMED_LIMIT_MS,
    );
  }

  async #owners(by: RedisServer): Promise<string> {
    const ranges = await rangesBy(by);
    const slots = ranges.map(([from, to, master]) => ({ from, to, port: master?.[1] })).sort((a, b) => a.from - b.from);
    // One node may split a range that another one has in a piece.
    const changes = slots.filter(({ port }, i) => port !== slots[i - 1]?.port);
    return changes.map(({ from, port }) => `${from}:${port}`).join(' ');
  }

  /** A connection of the user's, for `createClient`; it connects only when it is used. */
  connection(options: Omit<ClusterOptions, 'redisOptions'> = {}, redisOptions: RedisOptions = {}): Cluster {
    const tls = this.tls && { tls: { ca: this.tls.ca } };
    return new Cluster(
      this.servers.map((server) => this.#addressOf(server)),
      { lazyConnect: true, ...options, redisOptions: { ...tls, ...redisOptions, replyMapping: 'legacy' } },
    );
  }

  async idOf(server: RedisServer): Promise<string> {
    return String(await server.command('CLUSTER', 'MYID'));
  }

  /** The owner of the slot of this key and its replicas, as reported by a running node. */
  async shardOf(key: string): Promise<{ master: RedisServer; replicas: RedisServer[] }> {
    return this.shardOfSlot(keySlot(key));
  }

  /** By the word of the node that has it: others may not have heard yet. */
  async shardOfSlot(slot: number): Promise<{ master: RedisServer; replicas: RedisServer[] }> {
    const nodesBy = async (asked: RedisServer): Promise<RedisServer[]> => {
      const [, , ...nodes] = (await rangesBy(asked)).find(([from, to]) => from <= slot && slot <= to) ?? [0, 0];
      // Redis 6.0 reports the TLS port to every client.
      return nodes.flatMap(([, port]) =>
        this.servers.filter((each) => each.port === port || this.#tlsPorts.get(each) === port),
      );
    };
    const answering = this.servers.filter(({ running, stopped }) => running && !stopped);
    let heard: RedisServer[] = [];
    for (const asked of answering) {
      const nodes = await nodesBy(asked);
      if (nodes.length > 0 && (heard.length === 0 || nodes[0] === asked)) heard = nodes;
      if (nodes[0] === asked) break;
    }
    const [master, ...replicas] = heard;
    if (master === undefined) throw new Error(`no node has slot ${slot}`);
    return { master, replicas };
  }

  async masters(): Promise<RedisServer[]> {
    const roles = await Promise.all(
      this.servers.map(async (server) => server.running && String(await server.command('INFO', 'replication'))),
    );
    return this.servers.filter((_, i) => String(roles[i]).includes('role:master'));
  }

  /** The first replica of this master takes over, by its own request; resolves when all running nodes know. */
  async failover(master: RedisServer, mode?: 'FORCE' | 'TAKEOVER'): Promise<RedisServer> {
    const info = String(await master.command('INFO', 'replication'));
    const port = Number(/slave0:.*port=(\d+)/.exec(info)?.[1]);
    const replica = this.servers.find((server) => server.port === port);
    if (replica === undefined) throw new Error('this master has no replica');
    await this.settled();
    for (;;) {
      await replica.command('CLUSTER', 'FAILOVER', ...(mode === undefined ? [] : [mode]));
      // Masters may refuse their vote, as long as one of them has not heard of the last slot move.
      if (
        await this.promoted(replica, 2_000).then(
          () => true,
          () => false,
        )
      )
        return replica;
    }
  }

  async promoted(replica: RedisServer, limitMs = FORMED_LIMIT_MS): Promise<void> {
    await until(
      async () => String(await replica.command('INFO', 'replication')).includes('role:master'),
      'the replica is master',
      limitMs,
    );
  }

  /** Marks the slot as on its way; clients are sent from node to node, key by key, until `finish`. */
  async beginMove(slot: number, to: RedisServer): Promise<SlotMove> {
    const { master: from } = await this.shardOfSlot(slot);
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await this.idOf(from));
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await this.idOf(to));
    const { requirepass } = this.options;
    const auth = requirepass === undefined ? [] : ['AUTH', requirepass];
    const moveKeys = async (isChosen: (key: string) => boolean = () => true): Promise<void> => {
      for (;;) {
        const all = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
        const keys = all.filter(isChosen);
        if (keys.length === 0) return;
        const { host, port } = this.#addressOf(to);
        await from.command('MIGRATE', host, port, '', 0, 5_000, ...auth, 'KEYS', ...keys);
      }
    };
    return {
      from,
      to,
      moveKeys,
      finish: async () => {
        await moveKeys();
        const id = await this.idOf(to);
        await to.command('CLUSTER', 'SETSLOT', slot, 'NODE', id);
        await from.command('CLUSTER', 'SETSLOT', slot, 'NODE', id).catch((error: unknown) => {
          // It has heard of it, and with its last slot gone it follows the one that has it now.
          if (!/only with masters/.test(String(error))) throw error;
        });
        for (const server of await this.masters())
          await server.command('CLUSTER', 'SETSLOT', slot, 'NODE', id).catch(() => undefined); // gossip reports it, too
        if (serverMajor() < 7) await this.#heardOf(slot, to);
      },
    };
  }

  /**
   * Redis 6.0 uses the epoch of the owner that it knows, although that node no longer claims the slot. If this epoch is
   * above that of the new owner, as after a collision, other nodes ignore the new owner, or even the new owner forgets
   * its slot. So the new owner claims the slot again.
   */
  async #heardOf(slot: number, owner: RedisServer): Promise<void> {
    const hasHeard = async (server: RedisServer): Promise<boolean> => {
      const [, , master] = (await rangesBy(server)).find(([from, to]) => from <= slot && slot <= to) ?? [];
      return master?.[1] === this.#addressOf(owner).port || master?.[1] === owner.port;
    };
    const allHeard = async (): Promise<boolean> =>
      (await Promise.all(this.servers.filter(({ running, stopped }) => running && !stopped).map(hasHeard))).every(
        Boolean,
      );
    await until(
      async () => {
        for (const begun = performance.now(); performance.now() - begun < GOSSIP_MS; await pause(20))
          if (await allHeard()) return true;
        await owner.command('CLUSTER', 'SETSLOT', slot, 'NODE', await this.idOf(owner));
        await owner.command('CLUSTER', 'BUMPEPOCH');
        return false;
      },
      'all nodes know the owner of the slot',
      FORMED_LIMIT_MS,
    );
  }

  async moveSlot(slot: number, to: RedisServer): Promise<void> {
    await (await this.beginMove(slot, to)).finish();
  }

  /** But for the lanes of requests, which stay for an hour. */
  async keysOn(server: RedisServer): Promise<string[]> {
    return (await server.keys()).filter((key) => !key.startsWith('holdfast_requests:'));
  }

  /** The keys and channels that are left on masters. */
  async leftovers(): Promise<{ keys: string[]; channels: string[] }> {
    const keys: string[] = [];
    const channels = new Set<string>();
    const running = this.servers.filter((server) => server.running);
    for (const server of await this.masters()) keys.push(...(await this.keysOn(server)));
    for (const server of running) {
      for (const channel of await server.channels()) channels.add(channel);
      const sharded = await server.command('PUBSUB', 'SHARDCHANNELS').catch(() => []); // none before Redis 7
      for (const channel of sharded as string[]) channels.add(channel);
    }
    return { keys, channels: [...channels] };
  }

  /** Restarts the nodes that a test has stopped or killed. */
  async heal(): Promise<void> {
    for (const server of this.servers) {
      if (server.running) server.resume();
      else await server.start();
    }
    await this.settled();
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

type SlotRanges = [from: number, to: number, ...[host: string, port: number][]][];

const rangesBy = async (server: RedisServer): Promise<SlotRanges> =>
  (await server.command('CLUSTER', 'SLOTS')) as SlotRanges;

function firstSlot(master: number, masters: number, lopsided: boolean): number {
  if (!lopsided || master === 0) return Math.ceil((SLOTS * master) / masters);
  return SLOTS - (masters - master);
}

export interface SlotMove {
  readonly from: RedisServer;
  readonly to: RedisServer;
  /** Takes the keys that are there now over to the new node, or some of them. */
  moveKeys(isChosen?: (key: string) => boolean): Promise<void>;
  finish(): Promise<void>;
}

/** Returns a name whose slot belongs to this server. */
export async function nameOn(cluster: RedisCluster, server: RedisServer, label: string): Promise<string> {
  for (let i = 0; ; i++) {
    const name = `${label}:${i}`;
    if ((await cluster.shardOf(name)).master === server) return name;
  }
}
