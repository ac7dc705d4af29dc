import { asyncDispose } from '../async-dispose.js';
import { randomUUID } from 'node:crypto';
import { closeClient, type CloseOptions, type CloseResult } from './closing.js';
import { holdsOf, tenuresOf, type HoldInfo } from './hold-info.js';
import type { InspectOptions, ListEntry } from '../inspection/describe.js';
import type { ForceUnlockOptions } from '../inspection/force-unlock.js';
import type { Inspection } from '../inspection/inspection.js';
import { Inspector } from '../inspection/inspector.js';
import type { ListOptions } from '../inspection/list.js';
import type { Pace } from '../inspection/servers.js';
import { Overview } from './overview.js';
import { whenReady } from './ready.js';
import { wire, type Wiring } from './wiring.js';
import { keepWiring } from './wiring-of.js';
import type { Clock } from '../clock.js';
import { boundRejection, supportsBoundPromises } from '../ownership/bound-promise.js';
import { runOutside } from '../ownership/flow.js';
import { FairLockProtocol } from '../protocols/fair-lock-protocol.js';
import { FencedLockProtocol } from '../protocols/fenced-lock-protocol.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { LatchProtocol } from '../protocols/latch-protocol.js';
import { NonReentrantLockProtocol } from '../protocols/non-reentrant-lock-protocol.js';
import { PermitExpirableSemaphoreProtocol } from '../protocols/permit-expirable-semaphore-protocol.js';
import { ReadProtocol, WriteProtocol } from '../protocols/read-write-lock-protocol.js';
import { SemaphoreProtocol } from '../protocols/semaphore-protocol.js';
import { SpinLockProtocol } from '../protocols/spin-lock-protocol.js';
import { addClient } from '../ownership/process-holds.js';
import { keepNames, showAs } from '../summary.js';
import { InvalidArgumentError } from '../errors.js';
import type { ClientStats } from '../diagnostics/stats.js';
import type { EventBus } from '../events.js';
import { isLockName, LockName, nameOf, type Named } from '../lock-name.js';
import type { ResolvedOptions } from '../options.js';
import {
  checkContext,
  checkCloseOptions,
  checkDeclaredPermits,
  checkHandleOptions,
  checkName,
  checkValues,
  type ContextOptions,
} from '../locks/arguments.js';
import { CountDownLatch } from '../synchronizers/latch.js';
import { FairLock } from '../locks/fair-lock.js';
import { checkTokens, FencedHold, FencedLock, type FencedLockOptions } from '../locks/fenced-lock.js';
import { GroupLockProtocol } from '../several/group/group-lock-protocol.js';
import { GroupMultiLock } from '../several/group/group-lock.js';
import { LockContext } from '../ownership/lock-context.js';
import { MultiHold } from '../several/joint-hold.js';
import { locksAndOptions } from '../several/joint-lock.js';
import type { Lock } from '../locks/lock.js';
import { MultiLock } from '../several/multi-lock.js';
import { Permit } from '../synchronizers/permit.js';
import { PermitExpirableSemaphore } from '../synchronizers/expirable-semaphore.js';
import type { SemaphoreOptions } from '../synchronizers/permit-source.js';
import { PlainLockProtocol } from '../protocols/plain-lock-protocol.js';
import { ReadWriteLock } from '../locks/read-write-lock.js';
import { checkDriftFactor } from '../several/drift.js';
import { RedLock, type RedLockOptions } from '../several/red-lock.js';
import { Semaphore } from '../synchronizers/semaphore.js';
import { SingleHold } from '../holding/single-hold.js';
import { SingleLock } from '../locks/single-lock.js';
import { pausesOf, type SpinLockOptions } from '../locks/spin-lock.js';
import type { UserConnection } from '../redis/connections/user-connection.js';

/**
 * A client of one Redis server, Sentinel group or cluster. {@link createClient} creates it. Each client is a stranger
 * to every other client, also in the same process.
 *
 * @redisson `RedissonClient`, as far as locks and synchronizers go
 */
export class LockClient implements AsyncDisposable {
  /** The part before the colon in every owner id of this client: a random UUID. */
  readonly id: string = randomUUID();
  /** Lifecycle events: acquired, released, lease lost, connection errors and more. See {@link LockEvents}. */
  readonly events: EventBus;
  readonly #wiring: Wiring;
  readonly #inspector: Inspector;
  readonly #leaveProcess: () => void;
  readonly #onClose: () => void;
  #closing: Promise<CloseResult> | undefined;

  private constructor(given: UserConnection, options: ResolvedOptions, clock: Clock, onClose: () => void) {
    this.#onClose = onClose;
    this.#wiring = wire(this.id, given, options, clock);
    this.events = this.#wiring.reports.events;
    keepWiring(this, this.#wiring);
    this.#inspector = new Inspector(this.#wiring);
    this.#leaveProcess = addClient({ clientId: this.id, clock: this.#wiring.clock, lines: this.#wiring.lines });
    void supportsBoundPromises();
  }

  /** @internal */
  static open(given: UserConnection, options: ResolvedOptions, clock: Clock, onClose: () => void): LockClient {
    return new LockClient(given, options, clock, onClose);
  }

  /**
   * Resolves when Redis is available. Other calls need not wait for it: each waits for the connection within its own
   * command deadline.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis was not available within `commandTimeout`.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: the credentials are wrong.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @redisson `Redisson#create(Config)` connects
   */
  async ready(): Promise<void> {
    return whenReady(this.#wiring);
  }

  /**
   * Creates a handle for a reentrant lock. The call sends no command.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getLock('order:42');
   * await lock.withLock({ waitTime: 5_000 }, async () => ship());
   * @redisson `RedissonClient#getLock`
   */
  getLock(name: string | LockName, options: ContextOptions = {}): Lock {
    return this.#lock(new PlainLockProtocol(this.#wiring.port, this.#checkName(name)), options);
  }

  #checkName(name: unknown): string | LockName {
    const checked = isLockName(name) ? name : checkName(name);
    this.#wiring.topology.checkName(this.#wiring.port.keyPrefix + nameOf(checked));
    return checked;
  }

  /**
   * Creates a handle for a lock that refuses a second hold of its owner with `NonReentrantError`.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getNonReentrantLock('import');
   * @redisson `RedissonClient#getNonReentrantLock`
   */
  getNonReentrantLock(name: string | LockName, options: ContextOptions = {}): Lock {
    return this.#lock(new NonReentrantLockProtocol(this.#wiring.port, this.#checkName(name)), options);
  }

  /**
   * Creates a handle for a lock that serves its waiters in the order of their requests, across all processes.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getFairLock('printer');
   * @redisson `RedissonClient#getFairLock`
   */
  getFairLock(name: string | LockName, options: ContextOptions = {}): FairLock {
    return this.#fairLock(name, true, options);
  }

  /**
   * Creates a handle for a fair lock that refuses a second hold of its owner with `NonReentrantError`.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getNonReentrantFairLock('printer');
   * @redisson `RedissonClient#getNonReentrantFairLock`
   */
  getNonReentrantFairLock(name: string | LockName, options: ContextOptions = {}): FairLock {
    return this.#fairLock(name, false, options);
  }

  #fairLock(name: string | LockName, reentrant: boolean, options: ContextOptions): FairLock {
    const { context } = checkHandleOptions(options);
    const protocol = new FairLockProtocol(this.#wiring.port, this.#checkName(name), this.#wiring.options, reentrant);
    return new FairLock(this.#wiring.locks, protocol, context);
  }

  /**
   * Creates a handle for a lock whose waiters poll with growing pauses instead of subscribing to a channel.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const lock = client.getSpinLock('cache', { backOff: { initialDelay: 1, maxDelay: 64 } });
   * @redisson `RedissonClient#getSpinLock`
   */
  getSpinLock(name: string | LockName, options: SpinLockOptions = {}): Lock {
    const { backOff, context } = checkHandleOptions(options, ['backOff']);
    return this.#lock(new SpinLockProtocol(this.#wiring.port, this.#checkName(name), pausesOf(backOff)), { context });
  }

  /**
   * Creates a handle for a lock whose holds carry fencing tokens. Each token is larger than all earlier ones.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * await client.getFencedLock('disk').withLock(async ({ token }) => disk.write(data, token));
   * @redisson `RedissonClient#getFencedLock`
   */
  getFencedLock(name: string | LockName, options: FencedLockOptions = {}): FencedLock {
    const { tokens, context } = checkHandleOptions(options, ['tokens']);
    const protocol = new FencedLockProtocol(this.#wiring.port, this.#checkName(name), checkTokens(tokens));
    return new FencedLock(this.#wiring.locks, protocol, context);
  }

  /**
   * Creates a handle for a read-write lock: many readers or one writer.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const catalog = client.getReadWriteLock('catalog');
   * const items = await catalog.readLock().withLock(async () => load());
   * @redisson `RedissonClient#getReadWriteLock`
   */
  getReadWriteLock(name: string | LockName, options: ContextOptions = {}): ReadWriteLock {
    const read = this.#lock(new ReadProtocol(this.#wiring.port, this.#checkName(name)), options);
    return new ReadWriteLock(read.name, read, this.#lock(new WriteProtocol(this.#wiring.port, name), options));
  }

  /**
   * Creates a handle for several values of one group. One script locks all of them or none.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the group, a value or an option is invalid.
   * @example
   * const seats = client.getMultiLock('seats', ['12A', '12B']);
   * @redisson `RedissonClient#getMultiLock(String, Collection<Object>)`. Values are strings, as with `StringCodec`.
   */
  getMultiLock(group: string | LockName, values: readonly string[], options?: ContextOptions): GroupMultiLock;
  /**
   * Creates one lock of several locks, which may be of other clients and kinds. Pass options as the last argument. The
   * multi-lock acts for the context of the options, or for the context that all of its locks name.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: a lock or an option is invalid, or the contexts differ.
   * @example
   * const both = client.getMultiLock(client.getLock('account:1'), client.getLock('account:2'));
   * @redisson `RedissonClient#getMultiLock(RLock...)`
   */
  getMultiLock(...locks: readonly (Lock | ContextOptions)[]): MultiLock;
  getMultiLock(...given: readonly unknown[]): GroupMultiLock | MultiLock {
    if (typeof given[0] !== 'string' && !isLockName(given[0])) {
      const { locks, options } = locksAndOptions<ContextOptions>(given, ['context']);
      return new MultiLock(locks, checkContext(options.context));
    }
    const [group, values, options] = given as [Named, unknown, ContextOptions?];
    const { context } = checkHandleOptions(options);
    const protocol = new GroupLockProtocol(this.#wiring.port, this.#checkName(group), checkValues(values));
    return new GroupMultiLock(this.#wiring.locks, protocol, context);
  }

  /**
   * Creates a lock that a majority of independent servers grants. Pass one lock of each server's client, and options as
   * the last argument.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: a lock or an option is invalid.
   * @example
   * const lock = a.getRedLock(a.getLock('job'), b.getLock('job'), c.getLock('job'));
   * @redisson `RedissonClient#getRedLock(RLock...)`
   */
  getRedLock(...locks: readonly (Lock | RedLockOptions)[]): RedLock {
    const { locks: members, options } = locksAndOptions<RedLockOptions>(locks, ['context', 'driftFactor']);
    return new RedLock(members, checkDriftFactor(options.driftFactor), checkContext(options.context));
  }

  /**
   * Creates a handle for a semaphore: permits without owners. With `permits`, its calls create a missing semaphore.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const uploads = client.getSemaphore('uploads', { permits: 5 });
   * await uploads.withPermits(async () => upload(file));
   * @redisson `RedissonClient#getSemaphore`
   */
  getSemaphore(name: string | LockName, options?: SemaphoreOptions): Semaphore {
    const declared = checkDeclaredPermits(options);
    const protocol = new SemaphoreProtocol(this.#wiring.port, this.#checkName(name), declared);
    return new Semaphore(this.#wiring.objects, protocol);
  }

  /**
   * Creates a handle for a semaphore whose permits have an id and a lease each. With `permits`, its calls create a
   * missing semaphore.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or an option is invalid.
   * @example
   * const licenses = client.getPermitExpirableSemaphore('licenses', { permits: 3 });
   * await licenses.withPermit({ leaseTime: 30_000 }, async () => render());
   * @redisson `RedissonClient#getPermitExpirableSemaphore`
   */
  getPermitExpirableSemaphore(name: string | LockName, options?: SemaphoreOptions): PermitExpirableSemaphore {
    const declared = checkDeclaredPermits(options);
    const protocol = new PermitExpirableSemaphoreProtocol(this.#wiring.port, this.#checkName(name), declared);
    return new PermitExpirableSemaphore(this.#wiring.objects, protocol);
  }

  /**
   * Creates a handle for a count-down latch: a gate that opens when its count reaches 0.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name is invalid, or it has braces in a cluster.
   * @example
   * const started = client.getCountDownLatch('started');
   * @redisson `RedissonClient#getCountDownLatch`
   */
  getCountDownLatch(name: string | LockName): CountDownLatch {
    const { port, topology, objects } = this.#wiring;
    const protocol = new LatchProtocol(port, this.#checkName(name));
    // Redisson puts braces around a name that already has braces. The channel is then in another slot than the key.
    if (topology.slotGroup(protocol.key) !== topology.slotGroup(protocol.channel)) {
      throw new InvalidArgumentError('name', 'a name without braces, for a latch in a cluster', name);
    }
    return new CountDownLatch(objects, protocol);
  }

  #lock(protocol: LockProtocol, options: ContextOptions): Lock {
    return new SingleLock(this.#wiring.locks, protocol, checkHandleOptions(options).context);
  }

  /** Lists the locks that this client holds now. The call sends no command. */
  holds(): HoldInfo[] {
    return holdsOf(this.#wiring);
  }

  /** Returns what this client has counted since its creation. The call sends no command. */
  stats(): ClientStats {
    return this.#wiring.reports.counters.snapshot(tenuresOf(this.#wiring.lines));
  }

  /**
   * Reads the objects under a name from Redis in one step, without a change in between. With `processes`, further commands find the processes
   * of the owners and the number of waiting clients.
   *
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply within one command deadline.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * const { kind, owners, remaining } = await client.inspect('order:42');
   */
  inspect(name: string | LockName, options: InspectOptions & { processes: true }): Promise<ListEntry>;
  inspect(name: string | LockName, options?: InspectOptions): Promise<Inspection>;
  async inspect(name: string | LockName, options?: InspectOptions): Promise<Inspection> {
    return this.#inspector.inspect(nameOf(this.#checkName(name)), options);
  }

  /**
   * Lists the objects in use, in no order: held locks, semaphores, taken permits and latches of every program that uses
   * this Redis, with the processes of the owners. It reads page by page with `SCAN`, so it can take long if Redis has
   * many keys, and objects that change during the list may be missing. A semaphore or latch is listed if a call waits for
   * it, a permit with a lease is taken, or a Holdfast client changed it in the last hour: its key is only a number.
   *
   * In a cluster, a server may not reply, or slots may have no owner. Then the list yields what the other servers have,
   * and rejects at its end with an error that names what is missing.
   *
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
   * @throws {LockAbortedError} `ERR_LOCK_ABORTED`: the signal was aborted.
   * @throws the errors of {@link LockClient.inspect} as well.
   * @example
   * for await (const { name, owners } of client.list({ match: 'order:*' })) console.log(name, owners[0]?.process);
   */
  list(options?: ListOptions): AsyncIterableIterator<ListEntry> {
    return this.#inspector.list(options);
  }

  /**
   * Frees a lock of any kind if the given owner still has it, and wakes its waiters. The owner may still work: it
   * learns of the loss at its next renewal or release.
   *
   * @returns `true` if this call freed the lock, `false` if the owner did not have it.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: the name or `ifOwner` is invalid. No command was sent.
   * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: Redis did not reply. With `outcome: 'unknown'` the
   *   request may have run once, and it will not run later.
   * @throws {RefusedError} `ERR_LOCK_REFUSED`: Redis rejected the command.
   * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
   * @example
   * const [owner] = (await client.inspect('order:42')).owners;
   * if (owner !== undefined) await client.forceUnlock('order:42', { ifOwner: owner.owner });
   * @redisson `RLock#forceUnlock()`. Differs: frees only the hold of the given owner.
   */
  async forceUnlock(name: string | LockName, options: ForceUnlockOptions): Promise<boolean> {
    return this.#inspector.forceUnlock(this.#checkName(name), options);
  }

  /** @internal */
  overview(pace: Pace): Overview {
    return new Overview(this.#wiring, pace);
  }

  /**
   * Closes the client. Renewals stop, and waiters and open holds get a `ClientClosedError`. The call settles within one
   * command deadline even if Redis is unavailable, and with `drain` within that time more. Every call returns the promise of
   * the first call.
   *
   * @returns with `drain`: whether all work had ended, and the holds that were still open.
   * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
   * @example
   * process.once('SIGTERM', () => void client.close({ drain: 10_000, releaseHolds: true }));
   * @redisson `RedissonClient#shutdown()`. Differs: with `releaseHolds` it releases the locks.
   */
  close(options: CloseOptions & { drain: number }): Promise<CloseResult>;
  close(options?: CloseOptions): Promise<void>;
  close(options: CloseOptions = {}): Promise<CloseResult | void> {
    try {
      checkCloseOptions(options);
    } catch (error) {
      return boundRejection(error);
    }
    if (this.#closing !== undefined) return this.#closing;
    this.#onClose();
    this.#closing = runOutside(() => closeClient(this.#wiring, options).finally(this.#leaveProcess));
    return this.#closing;
  }

  /** Closes the client at the end of an `await using` block. Open holds end with their leases. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }
}

showAs(LockClient, ({ id }) => ({ id }));

keepNames({
  CountDownLatch,
  FairLock,
  FencedHold,
  FencedLock,
  GroupMultiLock,
  LockClient,
  LockContext,
  LockName,
  MultiHold,
  MultiLock,
  Permit,
  PermitExpirableSemaphore,
  ReadWriteLock,
  RedLock,
  Semaphore,
  SingleHold,
  SingleLock,
});
