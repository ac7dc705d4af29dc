import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { within, type Clock, type Timer } from '../../clock.js';
import { addressText, slotRanges, type NodeAddress, type SlotRange } from '../cluster-slots.js';
import { nodeOptions, openNodeConnection, type OwnTerms } from '../connections/own-connection.js';
import { startupNodesOf } from '../connections/user-connection.js';
import { failureKind, withoutArguments } from '../server-error.js';
import { NEWER_MAP_MS } from '../../timing.js';

/** The view that one node has of its cluster. */
export interface ClusterView {
  readonly ranges: readonly SlotRange[];
  /** A number that grows with every failover and slot migration. A node that was isolated has an old one. */
  readonly epoch: number;
  /** Whether the node supports sharded pub/sub (Redis 7 or later). */
  readonly sharded: boolean;
}

/**
 * Number of nodes that get a request in parallel. A few of them may be down, and a cluster may have hundreds of nodes.
 */
const ASKED_AT_ONCE = 5;
/** The DNS lookups may take as long as this many attempts. Three attempts fit into a command deadline. */
const LOOKUP_ATTEMPTS = 3;

/**
 * Reads the map from slots to servers from nodes. Every request opens a new connection: the client refreshes the map
 * after a fault, and the existing connections may be the fault.
 */
export class ClusterDiscovery {
  readonly #options: Cluster['options'];
  readonly #startupNodes: readonly RedisOptions[];
  /** Connections of pending requests. */
  readonly #asking = new Set<Redis>();
  #closed = false;

  constructor(
    private readonly given: Cluster,
    private readonly clock: Clock,
    private readonly terms: OwnTerms,
  ) {
    this.#options = given.options;
    this.#startupNodes = startupNodesOf(given).map(nodeOptions);
  }

  /**
   * Options for discovered nodes: those of `redisOptions`, then the credentials of the first startup node that has
   * some. The user may change both at any time.
   */
  #nodeOptions(): RedisOptions {
    const { username, password, tls, family } =
      startupNodesOf(this.given)
        .map(nodeOptions)
        .find((node) => node.password !== undefined || node.tls !== undefined) ?? {};
    const inherited = Object.entries({ username, password, tls, family }).filter(([, value]) => value !== undefined);
    return { ...Object.fromEntries(inherited), ...this.#options.redisOptions, db: 0 };
  }

  open(address: NodeAddress, override?: RedisOptions): Redis {
    return openNodeConnection(address, () => this.#nodeOptions(), this.terms, override);
  }

  /** Translates an address that the cluster announced to the address to connect to. */
  reachable(announced: NodeAddress): NodeAddress {
    const { natMap } = this.#options;
    const text = addressText(announced);
    const mapped = typeof natMap === 'function' ? natMap(text) : natMap?.[text];
    return mapped ?? announced;
  }

  /** Ends pending requests. A node that hangs would otherwise keep the process alive until its request times out. */
  close(): void {
    this.#closed = true;
    for (const redis of this.#asking) redis.disconnect();
  }

  /** Resolves with the newest view among several nodes. Rejects with the last error if no node replies. */
  async look(known: readonly NodeAddress[]): Promise<ClusterView> {
    const tried = new Set<string>();
    let failure: unknown = new Error('no address of a cluster node is known');
    // Try the known addresses first: the startup names need DNS, which may be unavailable as well.
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
        // If Redis rejects it, the view counts as the oldest. It is used if no other node replies.
        redis.call('cluster', 'info').catch(() => ''),
        redis.call('pubsub', 'shardnumsub').then(() => true, falseIfRejected),
      ]);
      const known = slotRanges(ranges, address);
      // The node is not part of the cluster. Ignore its view, because the other nodes may need more time.
      if (known.length === 0) throw new Error(`${addressText(address)} reports no slots; it is not part of a cluster`);
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

  /**
   * Resolves the names again each time, because their addresses may change. The time limit ends an unanswered lookup.
   */
  async #startupAddresses(): Promise<NodeAddress[]> {
    const found: NodeAddress[] = [];
    const lookups = this.#startupNodes.map(async (node) => found.push(...(await this.#addressesOf(node))));
    await within(this.clock, LOOKUP_ATTEMPTS * this.terms.attemptMs, Promise.all(lookups));
    return found;
  }

  async #addressesOf({ host = '127.0.0.1', port = 6379 }: RedisOptions): Promise<NodeAddress[]> {
    if (isIP(host)) return [{ host, port }];
    if (this.#options.useSRVRecords) return this.#serviceAddresses(host);
    const { dnsLookup } = this.#options;
    // The socket does the default lookup itself. TLS needs the host name to verify the certificate.
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

/**
 * `false` only if Redis rejected the command. The client never repeats this check, so a lost connection or a busy
 * server must not decide it.
 */
function falseIfRejected(error: unknown): false {
  if (!(error instanceof Error) || failureKind(error) !== 'refused') throw error;
  return false;
}

function newest(asked: Promise<ClusterView>[], clock: Clock): Promise<ClusterView> {
  return new Promise((resolve, reject) => {
    let best: ClusterView | undefined;
    let unsettled = asked.length;
    let newerTimer: Timer | undefined;
    const finish = (failure?: Error): void => {
      newerTimer?.cancel();
      if (best === undefined) reject(failure ?? new Error('no node of the cluster replied'));
      else resolve(best);
    };
    for (const each of asked) {
      each.then(
        (view) => {
          unsettled -= 1;
          if (best === undefined || view.epoch > best.epoch) best = view;
          newerTimer ??= clock.setTimer(NEWER_MAP_MS, finish);
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
