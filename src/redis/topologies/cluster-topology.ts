/*
 * A Redis Cluster. The client keeps its own map from slots to servers. It reads the map when it first needs it, and
 * corrects it after every MOVED. While a server in the map is unavailable, the client repeatedly reads a new map.
 */
import type { Cluster } from 'ioredis';
import type { Clock, Timer } from '../../clock.js';
import { Gate } from '../../gate.js';
import { InvalidArgumentError } from '../../errors.js';
import type { ReplicaOptions } from '../../options.js';
import type { CommandPort } from '../connections/attempt.js';
import { ClusterDiscovery, type ClusterView } from './cluster-discovery.js';
import {
  addressText,
  fitsOneSlot,
  keySlot,
  redirectionIn,
  SLOTS,
  type NodeAddress,
  type Redirection,
} from '../cluster-slots.js';
import { ClusterSubscriber } from './cluster-subscriber.js';
import { Master, type MasterReports } from '../connections/master.js';
import { PUBLISH_COMMAND } from '../scripts/script.js';
import { isCredentialsError, isReply, NotSentError, refusal } from '../server-error.js';
import type { OwnTerms } from '../connections/own-connection.js';
import type { Subscriber } from '../connections/subscriber.js';
import type { Masters, Route, Topology } from './topology.js';
import { BackOff } from '../../back-off.js';
import { MAP_PAUSES, REDIRECTED_NODE_MS } from '../../timing.js';

interface Node {
  readonly address: NodeAddress;
  readonly master: Master;
  keptUntil: number;
}

export class ClusterTopology implements Topology {
  readonly isCluster = true;
  readonly acks: number;
  readonly subscriber: ClusterSubscriber;
  readonly #discovery: ClusterDiscovery;
  /** The connected servers, by reachable address. */
  readonly #nodes = new Map<string, Node>();
  #owners: (Node | undefined)[] = new Array<Node | undefined>(SLOTS).fill(undefined);
  /** Every node of the newest view, including replicas. The client reads the next view from some of them. */
  #known: NodeAddress[] = [];
  #mapped = false;
  #sharded: boolean | undefined;
  #lookTimer: Timer | undefined;
  #looking = false;
  #lookAgain = false;
  readonly #pauses = new BackOff(MAP_PAUSES);
  #lastError: Error | undefined;
  #closed = false;
  readonly #change: Gate;

  constructor(
    given: Cluster,
    sharded: boolean | 'auto',
    private readonly clock: Clock,
    private readonly terms: OwnTerms,
    private readonly replicas: ReplicaOptions | undefined,
    private readonly reports: MasterReports,
  ) {
    this.#change = new Gate(clock);
    this.acks = replicas?.acks ?? 0;
    this.#discovery = new ClusterDiscovery(given, clock, terms);
    if (sharded !== 'auto') this.#sharded = sharded;
    this.subscriber = new ClusterSubscriber(
      (channel) => this.#subscriberOf(this.#owners[keySlot(channel)]),
      () => this.#look(),
    );
  }

  get publish(): string {
    if (this.#sharded === undefined) return PUBLISH_COMMAND;
    return this.#sharded ? 'SPUBLISH' : 'PUBLISH';
  }

  connectionFor(key: string, confirmed: boolean): CommandPort | undefined {
    return this.#owners[keySlot(key)]?.master.connection(confirmed);
  }

  async connect(key: string, confirmed: boolean, until: number): Promise<CommandPort> {
    const slot = keySlot(key);
    for (;;) {
      // A closed client gets no new map, so waiting for one would never end.
      if (this.#closed) throw new NotSentError('the connection is closed');
      const connection = this.#owners[slot]?.master.connection(confirmed);
      if (connection?.ready) return connection;
      if (connection === undefined) this.#look();
      // Wait until the server is ready, or until another server owns its slots.
      await this.#whenChanged(until, connection?.whenReady(until));
    }
  }

  redirected(error: Error, from: CommandPort, confirmed: boolean): Route | undefined {
    const redirection = redirectionIn(error.message);
    if (redirection === undefined) {
      if (isReply(error)) this.#look();
      return undefined;
    }
    const host = [...this.#nodes.values()].find(({ master }) => master.has(from))?.address.host;
    const node = this.#redirect(redirection, host);
    return node && { connection: node.master.connection(confirmed), asking: redirection.kind === 'ASK' };
  }

  slotGroup(key: string): number {
    return keySlot(key);
  }

  checkName(name: string): void {
    if (fitsOneSlot(name)) return;
    throw new InvalidArgumentError('name', 'without braces, or with one non-empty {tag}, in a cluster', name);
  }

  async whenReady(until: number): Promise<void> {
    while (!this.#mapped || this.#owners.includes(undefined)) {
      this.#look();
      // The servers that have slots connect already: `masters` does not need the others.
      for (const master of this.#masters()) master.whenReady(until).catch(() => undefined);
      await this.#whenChanged(until);
    }
    try {
      await Promise.all(this.#masters().map((master) => master.whenReady(until)));
    } catch (error) {
      // A server lost its slots while the client waited. Wait for the new owner of the slots.
      if (!(error instanceof NotSentError) || this.#closed || this.clock.monotonic() >= until) throw error;
      await this.whenReady(until);
    }
  }

  async masters(until: number): Promise<Masters> {
    let late: NotSentError | undefined;
    try {
      await this.whenReady(until);
    } catch (error) {
      if (!(error instanceof NotSentError) || this.#closed) throw error;
      late = error;
    }
    const servers = [...new Set(this.#owners)].flatMap((node) =>
      node === undefined ? [] : { connection: node.master.connection(false), address: addressText(node.address) },
    );
    const ready = servers.filter(({ connection }) => connection.ready);
    if (late !== undefined && ready.length === 0) throw late;
    const missing = servers.filter(({ connection }) => !connection.ready).map(({ address }) => `server ${address}`);
    return { ready, missing: [...missing, ...ownerless(this.#owners)] };
  }

  #masters(): Master[] {
    return [...new Set(this.#owners)].flatMap((node) => node?.master ?? []);
  }

  close(): void {
    this.#closed = true;
    this.#lookTimer?.cancel();
    this.#discovery.close();
    for (const { master } of this.#nodes.values()) master.close();
    this.#changed();
  }

  /**
   * Resolves when the map changes or `ready` resolves. Rejects at `until` (monotonic ms), or if the client is rejected.
   */
  #whenChanged(until: number, ready?: Promise<void>): Promise<void> {
    const late = (): Error =>
      this.#rejected ?? new NotSentError('no server of this key became ready in time', { cause: this.#lastError });
    // Another server may own the slots now, so only the deadline or a rejection ends the wait.
    const or = ready?.catch((error: unknown) => {
      if (error instanceof NotSentError && this.clock.monotonic() < until) return new Promise<void>(() => undefined);
      throw error;
    });
    // The wait keeps the process alive: between two requests for the map, nothing else does.
    return this.#change.wait({ until, late, or, keepsAlive: true });
  }

  #changed(): void {
    if (this.#closed) this.#change.open(new NotSentError('the connection is closed'));
    // A wrong password does not become right while calls wait, unless the client asks for it.
    else this.#change.open(this.terms.credentials === undefined ? this.#rejected : undefined);
  }

  get #rejected(): Error | undefined {
    const error = this.#lastError;
    return error !== undefined && isCredentialsError(error) ? refusal('the connection', error) : undefined;
  }

  /** Requests a new map, at once or after the current pause. */
  #look(): void {
    this.#lookAgain = true;
    if (this.#lookTimer === undefined && !this.#looking) this.#lookIn(0);
  }

  /** Always uses a timer, so that the new connections do not run inside a hold of the call that needed the map. */
  #lookIn(ms: number): void {
    if (this.#closed) return;
    this.#lookTimer = this.clock.setTimer(ms, () => {
      this.#lookTimer = undefined;
      if (this.#lookAgain || this.#troubled()) void this.#lookNow();
    });
  }

  async #lookNow(): Promise<void> {
    this.#looking = true;
    this.#lookAgain = false;
    try {
      const view = await this.#discovery.look(this.#known);
      if (this.#closed) return;
      this.#lastError = undefined;
      this.#apply(view);
    } catch (error) {
      if (this.#closed) return;
      this.#lastError = error as Error;
      this.reports.error('command', error);
      this.#lookAgain = true;
      this.#changed();
    } finally {
      this.#looking = false;
    }
    if (!this.#lookAgain && !this.#troubled()) this.#pauses.reset();
    this.#lookIn(this.#pauses.next());
  }

  /** A server is unavailable or a slot has no server, so the map may change soon. */
  #troubled(): boolean {
    for (const { master } of this.#nodes.values()) if (master.unavailable) return true;
    return this.#mapped && this.#owners.includes(undefined);
  }

  #apply(view: ClusterView): void {
    this.#sharded ??= view.sharded;
    const owners = new Array<Node | undefined>(SLOTS).fill(undefined);
    const current = new Set<Node>();
    const known = new Map<string, NodeAddress>();
    for (const { first, last, master, replicas } of view.ranges) {
      const node = this.#node(this.#discovery.reachable(master));
      current.add(node);
      owners.fill(node, first, last + 1);
      for (const address of [master, ...replicas].map((each) => this.#discovery.reachable(each)))
        known.set(addressText(address), address);
    }
    this.#owners = owners;
    this.#known = [...known.values()];
    this.#mapped = true;
    // Move subscriptions first, so that the servers retired below have none.
    this.subscriber.follow();
    const now = this.clock.monotonic();
    for (const [text, node] of this.#nodes) {
      if (current.has(node) || node.keptUntil > now) continue;
      this.#nodes.delete(text);
      node.master.retire();
    }
    this.#changed();
  }

  #redirect({ kind, slot, host, port }: Redirection, from: string | undefined): Node | undefined {
    const named = host ?? from;
    if (named === undefined || this.#closed) return undefined;
    const node = this.#node(this.#discovery.reachable({ host: named, port }));
    node.keptUntil = this.clock.monotonic() + REDIRECTED_NODE_MS;
    if (kind === 'MOVED' && this.#owners[slot] !== node) {
      this.#owners[slot] = node;
      this.subscriber.follow();
      this.#changed();
      // Slots seldom move alone, so get the whole map.
      this.#look();
    }
    return node;
  }

  #node(address: NodeAddress): Node {
    const text = addressText(address);
    let node = this.#nodes.get(text);
    if (node === undefined) {
      const master = new Master(() => this.#discovery.open(address), this.clock, this.terms.attemptMs, this.replicas, {
        ...this.reports,
        disconnected: () => this.#look(),
      });
      node = { address, master, keptUntil: 0 };
      this.#nodes.set(text, node);
    }
    return node;
  }

  #subscriberOf(node: Node | undefined): Subscriber | undefined {
    if (node === undefined || this.#sharded === undefined) return undefined;
    return node.master.subscriber(this.#sharded, (to) => {
      if (to === undefined) this.#look();
      else this.#redirect(to, node.address.host);
    });
  }
}

/** The slots without an owner, such as `slots 0-5460`. */
function ownerless(owners: readonly unknown[]): string[] {
  const ranges: string[] = [];
  for (let first = owners.indexOf(undefined); first >= 0;) {
    const next = owners.findIndex((owner, slot) => slot > first && owner !== undefined);
    const last = next < 0 ? owners.length - 1 : next - 1;
    ranges.push(first === last ? String(first) : `${first}-${last}`);
    first = owners.indexOf(undefined, last + 1);
  }
  return ranges.length === 0 ? [] : [`slots ${ranges.join(', ')}`];
}
