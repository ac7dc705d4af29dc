import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.js';
import type { ReplicaOptions } from '../../options.js';
import type { CommandPort } from '../connections/attempt.js';
import { Master, type MasterReports } from '../connections/master.js';
import { openOwnConnection, type OwnTerms } from '../connections/own-connection.js';
import type { Subscriber } from '../connections/subscriber.js';
import type { Masters, Topology } from './topology.js';

/** A single server, or the current master according to Sentinel. */
export class StandaloneTopology implements Topology {
  readonly isCluster = false;
  readonly acks: number;
  readonly publish = 'PUBLISH';
  readonly subscriber: Subscriber;
  readonly #master: Master;

  constructor(
    given: Redis,
    clock: Clock,
    terms: OwnTerms,
    replicas: ReplicaOptions | undefined,
    reports: MasterReports,
  ) {
    this.acks = replicas?.acks ?? 0;
    this.#master = new Master(() => openOwnConnection(given, terms), clock, terms.attemptMs, replicas, reports);
    this.subscriber = this.#master.subscriber(false, undefined);
  }

  connectionFor(_key: string, confirmed: boolean): CommandPort {
    return this.#master.connection(confirmed);
  }

  async connect(_key: string, confirmed: boolean, until: number): Promise<CommandPort> {
    const connection = this.#master.connection(confirmed);
    await connection.whenReady(until);
    return connection;
  }

  redirected(): undefined {
    return undefined;
  }

  slotGroup(): number {
    return 0;
  }

  checkName(): void {
    // Without slots, every name is valid.
  }

  whenReady(until: number): Promise<void> {
    return this.#master.whenReady(until);
  }

  async masters(until: number): Promise<Masters> {
    return { ready: [{ connection: await this.connect('', false, until), address: undefined }], missing: [] };
  }

  close(): void {
    this.#master.close();
  }
}
