import { mechanismsOf, type Mechanisms } from '../../../src/client/wiring.js';
import { runOutside } from '../../../src/ownership/flow.js';
import type { LockProtocol, RemainingHold, RenewalItem, RenewalScript } from '../../../src/protocols/lock-protocol.js';
import { Reports } from '../../../src/diagnostics/reports.js';
import { createEvents, type EventSource } from '../../../src/events.js';
import { resolveOptions } from '../../../src/options.js';
import { PlainLockProtocol, plainRenewal } from '../../../src/protocols/plain-lock-protocol.js';
import type { ProtocolPort } from '../../../src/protocols/protocol-port.js';
import { ReaderReleases } from '../../../src/protocols/reader-releases.js';
import { ScriptExecutor } from '../../../src/redis/requests/script-executor.js';
import { ServerIdentity } from '../../../src/redis/requests/server-identity.js';
import type { ScriptRequest } from '../../../src/redis/requests/script-request.js';
import type { AcquireReply, HandOffReply, HeldReply } from '../../../src/redis/scripts/replies.js';
import type { FakeClock } from '../../support/time/fake-clock.js';
import type { Random } from '../../support/random.js';
import { FakeConnection, FakeSubscriber, type Sender } from './fake-network.js';
import type { FakeServer } from './fake-server.js';

export const TERMS = { commandTimeout: 300, lockWatchdogTimeout: 600, handOff: { maxSections: 3, maxTime: 40 } };

/** Called before a client sends a request. */
export interface Watcher {
  asksWith(owner: string): void;
  mayCount(owner: string): void;
  counts(owner: string, request: ScriptRequest<HeldReply>): void;
  renews(items: readonly RenewalItem[]): void;
  handsOff(from: string, to: string): void;
}

/** All mechanisms of a client, as createClient puts them together, on a connection in memory. */
export class FakeClient {
  readonly connection: FakeConnection;
  readonly subscriber: FakeSubscriber;
  readonly mechanisms: Mechanisms;
  readonly events: EventSource;
  readonly executor: ScriptExecutor;
  readonly #renewal: RenewalScript;

  constructor(
    readonly id: string,
    private readonly clock: FakeClock,
    server: FakeServer,
    random: Random,
    private readonly watcher: Watcher,
    deliver: (run: () => unknown, sender: Sender | undefined) => unknown,
  ) {
    this.connection = new FakeConnection(clock, server, random, random.below(5), deliver);
    this.subscriber = new FakeSubscriber(clock, random, () => this.connection.weather.delay);
    const options = resolveOptions({ ...TERMS, callSites: false }, '');
    this.events = createEvents(runOutside);
    this.executor = this.#executorFor(undefined);
    const renewal = plainRenewal(this.executor, () => 0);
    this.#renewal = {
      groupOf: (item) => renewal.groupOf(item),
      renew: (items) => (watcher.renews(items), renewal.renew(items)),
    };
    const { events, executor, subscriber } = this;
    const fieldsOf = (): Promise<readonly string[]> => Promise.resolve([]);
    this.mechanisms = mechanismsOf({
      clientId: id,
      server: new ServerIdentity('fake', executor, undefined),
      options,
      clock,
      reports: new Reports(id, clock, events),
      executor,
      subscriber,
      fieldsOf,
    });
  }

  /** The lock as one call sees it: every request is known to be that call's. */
  lock(name: string, sender: Sender | undefined): LockProtocol {
    const port: ProtocolPort = {
      executor: this.#executorFor(sender),
      clientId: this.id,
      keyPrefix: '',
      publish: 'PUBLISH',
      slotGroup: () => 0,
      readerReleases: new ReaderReleases(),
      renewals: { plain: this.#renewal, readWrite: this.#renewal, group: this.#renewal },
    };
    return new WatchedLock(port, name, this.watcher);
  }

  #executorFor(sender: Sender | undefined): ScriptExecutor {
    const { commandTimeout } = TERMS;
    return new ScriptExecutor(
      this.connection.routesFor(sender),
      this.clock,
      commandTimeout,
      Math.floor(commandTimeout / 3),
    );
  }
}

class WatchedLock extends PlainLockProtocol {
  constructor(
    port: ProtocolPort,
    name: string,
    private readonly watcher: Watcher,
  ) {
    super(port, name);
  }

  override acquire(owner: string, leaseMs: number, waits: boolean): ScriptRequest<AcquireReply> {
    this.watcher.asksWith(owner);
    return super.acquire(owner, leaseMs, waits);
  }

  override acquireNested(owner: string, holdCount: number, leaseMs: number): ScriptRequest<HeldReply> {
    this.watcher.mayCount(owner);
    const request = super.acquireNested(owner, holdCount, leaseMs);
    this.watcher.counts(owner, request);
    return request;
  }

  override releasePartial(
    owner: string,
    remaining: readonly RemainingHold[],
    leaseMs: number,
  ): ScriptRequest<HeldReply> {
    this.watcher.mayCount(owner);
    const request = super.releasePartial(owner, remaining, leaseMs);
    this.watcher.counts(owner, request);
    return request;
  }

  override handOff(from: string, to: string, leaseMs: number, ours: number): ScriptRequest<HandOffReply> {
    this.watcher.handsOff(from, to);
    return super.handOff(from, to, leaseMs, ours);
  }
}
