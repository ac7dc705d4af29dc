import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { within, type Clock, type Timer } from '../../clock.js';
import { addressText, slotRanges, type NodeAddress, type SlotRange } from '../cluster-slots.js';
import { nodeOptions, openNodeConnection, startupNodesOf } from '../connections/own-connection.js';
import { failureKind, withoutArguments } from '../server-error.js';

/** What one node of a cluster says about all of it. */
export interface ClusterView {
  readonly ranges: readonly SlotRange[];
  /** Grows with every failover and slot move; a node that was cut off has an old one. */
  readonly epoch: number;
  /** Redis 7 or later: messages can go by slot. */
  readonly sharded: boolean;
}

/** Nodes asked side by side: enough to get past a few that are down, few enough for a cluster of hundreds. */
const ASKED_AT_ONCE = 5;
/** After the first answer, others that may know more get this long. */
const GRACE_MS = 50;
/** How long the names are looked up for: as long as a command may take. */
const LOOKUP_ATTEMPTS = 3;

/**
 * Asks nodes who has which slot. Each question has a connection of its own: a refresh is made when something is wrong,
 * and the connections we have are what may be wrong.
 */
export class ClusterDiscovery {
  readonly #options: Cluster['options'];
  readonly #startupNodes: readonly RedisOptions[];
  /** Credentials and TLS that ioredis would use for nodes it finds, else those of the first node it was given. */
  readonly #nodeOptions: RedisOptions;
  /** Connections of questions that have not been answered. */
  readonly #asking = new Set<Redis>();
  #closed = false;

  constructor(
    given: Cluster,
    private readonly clock: Clock,
    private readonly attemptMs: number,
  ) {
    this.#options = given.options;
    this.#startupNodes = startupNodesOf(given).map(nodeOptions);
    const { username, password, tls, family } =
      this.#startupNodes.find((node) => node.password !== undefined || node.tls !== undefined) ?? {};
    const inherited = Object.entries({ username, password, tls, family }).filter(([, value]) => value !== undefined);
    this.#nodeOptions = { ...Object.fromEntries(inherited), ...given.options.redisOptions, db: 0 };
  }

  open({ host, port }: NodeAddress, override?: RedisOptions): Redis {
    return openNodeConnection({ ...this.#nodeOptions, host, port }, this.attemptMs, override);
  }

  /** The address to connect to for one that the cluster has announced. */
  reachable(announced: NodeAddress): NodeAddress {
    const { natMap } = this.#options;
    const text = addressText(announced);
    const mapped = typeof natMap === 'function' ? natMap(text) : natMap?.[text];
    return mapped ?? announced;
  }

  /** Nobody is asked any more: a node that hangs would keep the process for as long as it is waited for. */
  close(): void {
    this.#closed = true;
    for (const redis of this.#asking) redis.disconnect();
  }

  /** The newest of the views that nodes have; rejects with the last error if none of them answers. */
  async look(known: readonly NodeAddress[]): Promise<ClusterView> {
    const tried = new Set<string>();
    let failure: unknown = new Error('no address of the cluster is known');
    // Names come second: whoever looks them up may be away as well.
    for (const addresses of [() => known, () => this.#startupAddresses()]) {
      const left = shuffled(await addresses()).filter((address) => !tried.has(addressText(address)));
      for (const address of left) tried.add(addressText(address));
      while (left.length > 0 && !this.#closed) {
        try {
          return await newest(
            left.splice(0, ASKED_AT_ONCE).map((address) => this.#ask(address)),
            this.clock,
          );
        } catch (error) {
          failure = error;
        }
      }
    }
    throw failure;
  }

  async #ask(address: NodeAddress): Promise<ClusterView> {
    const redis = this.open(address, { retryStrategy: null });
    let failure: Error | undefined;
    redis.on('error', (error: Error) => (failure = error));
    this.#asking.add(redis);
    try {
      await redis.connect();
      const [ranges, info, sharded] = await Promise.all([
        redis.call('cluster', 'slots'),
        // May be refused; then its answer is taken if no other node gives a better one.
        redis.call('cluster', 'info').catch(() => ''),
        redis.call('pubsub', 'shardnumsub').then(() => true, isNotThere),
      ]);
      const known = slotRanges(ranges, address);
      // One that is not, or no longer, part of the cluster. The others may take longer.
      if (known.length === 0) throw new Error(`${addressText(address)} knows of no slot that is served`);
      return {
        ranges: known,
        epoch: Number(/cluster_current_epoch:(\d+)/.exec(String(info))?.[1] ?? 0),
        sharded,
      };
    } catch (error) {
      throw withoutArguments(failure ?? error);
    } finally {
      this.#asking.delete(redis);
      redis.disconnect();
    }
  }

  /** Looked up anew each time: the names may lead elsewhere by now, and a lookup may never be answered. */
  async #startupAddresses(): Promise<NodeAddress[]> {
    const found: NodeAddress[] = [];
    const lookups = this.#startupNodes.map(async (node) => found.push(...(await this.#addressesOf(node))));
    await within(this.clock, LOOKUP_ATTEMPTS * this.attemptMs, Promise.all(lookups));
    return found;
  }

  async #addressesOf({ host = '127.0.0.1', port = 6379 }: RedisOptions): Promise<NodeAddress[]> {
    if (isIP(host)) return [{ host, port }];
    if (this.#options.useSRVRecords) return this.#serviceAddresses(host);
    const { dnsLookup } = this.#options;
    // The socket does the usual lookup itself, and TLS then sees the name.
    if (dnsLookup === undefined || (dnsLookup as unknown) === lookup) return [{ host, port }];
    return new Promise((resolve) =>
      dnsLookup(host, (error, address) => resolve(error ? [] : [{ host: address, port }])),
    );
  }

  #serviceAddresses(host: string): Promise<NodeAddress[]> {
    return new Promise((resolve) => {
      const { resolveSrv } = this.#options;
      if (resolveSrv === undefined) return resolve([]);
      resolveSrv(host, (_error, records = []) => resolve(records.map(({ name, port }) => ({ host: name, port }))));
    });
  }
}

/** What is found out here is never asked again: a cut connection, or a server that is busy, decides nothing. */
function isNotThere(error: unknown): false {
  if (!(error instanceof Error) || failureKind(error) !== 'refused') throw error;
  return false;
}

function newest(asked: Promise<ClusterView>[], clock: Clock): Promise<ClusterView> {
  return new Promise((resolve, reject) => {
    let best: ClusterView | undefined;
    let unsettled = asked.length;
    let grace: Timer | undefined;
    const finish = (failure?: Error): void => {
      grace?.cancel();
      if (best === undefined) reject(failure ?? new Error('no node of the cluster answered'));
      else resolve(best);
    };
    for (const each of asked) {
      each.then(
        (view) => {
          unsettled -= 1;
          if (best === undefined || view.epoch > best.epoch) best = view;
          grace ??= clock.setTimer(GRACE_MS, finish);
          if (unsettled === 0) finish();
        },
        (failure: unknown) => {
          unsettled -= 1;
          if (unsettled === 0) finish(failure instanceof Error ? failure : undefined);
        },
      );
    }
  });
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
