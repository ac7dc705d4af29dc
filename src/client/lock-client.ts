import { asyncDispose } from '../async-dispose.js';
import { randomUUID } from 'node:crypto';
import { assemble, type Assembly } from './wiring.js';
import type { CloseOptions, HoldInfo, LockClient } from './create-client.js';
import { within, type Clock } from '../clock.js';
import { boundRejection, supportsBoundPromises } from '../ownership/bound-promise.js';
import { runOutside } from '../ownership/flow.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { addClient } from '../waiting/process-holds.js';
import { showAs } from '../summary.js';
import type { Tenure } from '../holding/tenure.js';
import { ClientClosedError, InvalidArgumentError, RedisUnavailableError } from '../errors.js';
import { createEvents } from '../events.js';
import { inspectionOf, type Inspection } from './inspection.js';
import type { ResolvedOptions } from '../options.js';
import {
  checkContext,
  checkCloseOptions,
  checkHandleOptions,
  checkName,
  checkValues,
  type ContextOptions,
} from '../locks/arguments.js';
import { CountDownLatch } from '../synchronizers/latch.js';
import { FairLock, FairLockProtocol } from '../locks/fair-lock.js';
import { checkTokens, FencedLock, FencedLockProtocol, type FencedLockOptions } from '../locks/fenced-lock.js';
import { GroupLockProtocol } from '../protocols/group-lock-protocol.js';
import { GroupMultiLock } from '../locks/group-lock.js';
import { locksAndOptions } from '../several/joint-lock.js';
import type { Lock } from '../locks/lock.js';
import { MultiLock } from '../several/multi-lock.js';
import { NonReentrantLockProtocol } from '../locks/non-reentrant-lock.js';
import { PermitExpirableSemaphore } from '../synchronizers/expirable-semaphore.js';
import type { SemaphoreOptions } from '../synchronizers/permit-source.js';
import { PlainLockProtocol, type ProtocolPort } from '../protocols/plain-lock-protocol.js';
import { ReadProtocol, ReadWriteLock, WriteProtocol } from '../locks/read-write-lock.js';
import { checkDriftFactor, RedLock, type RedLockOptions } from '../several/red-lock.js';
import { Semaphore } from '../synchronizers/semaphore.js';
import { SingleLock } from '../locks/single-lock.js';
import { pausesOf, SpinLockProtocol, type SpinLockOptions } from '../locks/spin-lock.js';
import { fairQueueKey, latchChannel, takenPermitsKey, tokenKey } from '../redis/keys.js';
import type { UserConnection } from '../redis/connections/user-connection.js';
import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import { inspect } from '../redis/scripts/object.js';
import type { Topology } from '../redis/topologies/topology.js';

/** Gives out what users lock with, and ends it all with `close()`. */
export class RedisLockClient implements LockClient {
  readonly id = randomUUID();
  readonly events = createEvents(runOutside);
  readonly #runtime: Assembly['runtime'];
  readonly #topology: Topology;
  readonly #executor: ScriptExecutor;
  readonly #port: ProtocolPort;
  readonly #leaveProcess: () => void;
  #closing: Promise<void> | undefined;

  constructor(given: UserConnection, options: ResolvedOptions, clock: Clock) {
    const { runtime, topology, executor, port } = assemble(this.id, given, options, clock, this.events);
    this.#runtime = runtime;
    this.#topology = topology;
    this.#executor = executor;
    this.#port = port;
    this.#leaveProcess = addClient(runtime);
    void supportsBoundPromises();
  }

  async ready(): Promise<void> {
    if (this.#runtime.closed) throw new ClientClosedError();
    const { commandTimeout } = this.#runtime.options;
    try {
      await this.#topology.whenReady(this.#runtime.clock.clock.monotonic() + commandTimeout);
    } catch (cause) {
      if (cause instanceof Error && 'code' in cause) throw cause;
      if (this.#runtime.closed) throw new ClientClosedError();
      throw new RedisUnavailableError(`Redis was not ready within ${commandTimeout} ms`, 'none', { cause });
    }
  }

  getLock(name: string, options: ContextOptions = {}): Lock {
    return this.#lock(new PlainLockProtocol(this.#port, this.#checkName(name)), options);
  }

  #checkName(name: unknown): string {
    const checked = checkName(name);
    this.#topology.checkName(this.#port.keyPrefix + checked);
    return checked;
  }

  getNonReentrantLock(name: string, options: ContextOptions = {}): Lock {
    return this.#lock(new NonReentrantLockProtocol(this.#port, this.#checkName(name)), options);
  }

  getFairLock(name: string, options: ContextOptions = {}): FairLock {
    return this.#fairLock(name, true, options);
  }

  getNonReentrantFairLock(name: string, options: ContextOptions = {}): FairLock {
    return this.#fairLock(name, false, options);
  }

  #fairLock(name: string, reentrant: boolean, options: ContextOptions): FairLock {
    const { context } = checkHandleOptions(options);
    const protocol = new FairLockProtocol(this.#port, this.#checkName(name), this.#runtime.options, reentrant);
    return new FairLock(this.#runtime, this.#executor, protocol, context);
  }

  getSpinLock(name: string, options: SpinLockOptions = {}): Lock {
    const { backOff, context } = checkHandleOptions(options, ['backOff']);
    return this.#lock(new SpinLockProtocol(this.#port, this.#checkName(name), pausesOf(backOff)), { context });
  }

  getFencedLock(name: string, options: FencedLockOptions = {}): FencedLock {
    const { tokens, context } = checkHandleOptions(options, ['tokens']);
    const protocol = new FencedLockProtocol(this.#port, this.#checkName(name), checkTokens(tokens));
    return new FencedLock(this.#runtime, this.#executor, protocol, context);
  }

  getReadWriteLock(name: string, options: ContextOptions = {}): ReadWriteLock {
    const read = this.#lock(new ReadProtocol(this.#port, this.#checkName(name)), options);
    return new ReadWriteLock(name, read, this.#lock(new WriteProtocol(this.#port, name), options));
  }

  getMultiLock(group: string, values: readonly string[], options?: ContextOptions): GroupMultiLock;
  getMultiLock(...locks: readonly (Lock | ContextOptions)[]): MultiLock;
  getMultiLock(...given: readonly unknown[]): GroupMultiLock | MultiLock {
    if (typeof given[0] !== 'string') {
      const { locks, options } = locksAndOptions<ContextOptions>(given, ['context']);
      return new MultiLock(locks, checkContext(options.context));
    }
    const [group, values, options] = given as [string, unknown, ContextOptions?];
    const { context } = checkHandleOptions(options);
    const protocol = new GroupLockProtocol(this.#port, this.#checkName(group), checkValues(values));
    return new GroupMultiLock(this.#runtime, this.#executor, protocol, context);
  }

  getRedLock(...given: readonly (Lock | RedLockOptions)[]): RedLock {
    const { locks, options } = locksAndOptions<RedLockOptions>(given, ['context', 'driftFactor']);
    return new RedLock(locks, checkDriftFactor(options.driftFactor), checkContext(options.context));
  }

  getSemaphore(name: string, options?: SemaphoreOptions): Semaphore {
    return new Semaphore(this.#runtime, this.#port, this.#checkName(name), options);
  }

  getPermitExpirableSemaphore(name: string, options?: SemaphoreOptions): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.#runtime, this.#port, this.#checkName(name), options);
  }

  getCountDownLatch(name: string): CountDownLatch {
    const checked = this.#checkName(name);
    const key = this.#port.keyPrefix + checked;
    // Redisson puts braces around a name that has some, which names another slot.
    if (this.#topology.slotGroup(key) !== this.#topology.slotGroup(latchChannel(key))) {
      throw new InvalidArgumentError('name', 'without braces, for a latch in a cluster', name);
    }
    return new CountDownLatch(this.#runtime, this.#port, checked);
  }

  #lock(protocol: LockProtocol, options: ContextOptions): Lock {
    return new SingleLock(this.#runtime, this.#executor, protocol, checkHandleOptions(options).context);
  }

  holds(): HoldInfo[] {
    const now = this.#runtime.clock.now();
    return [...this.#tenures()]
      .filter((tenure) => tenure.lease.check() !== 'lost' && tenure.holds.length > 0)
      .map(({ protocol, owner, holds }) => ({
        lockName: protocol.name,
        owner,
        holdCount: holds.length,
        age: Math.round(now - (holds[0]?.openedAt ?? now)),
        callSite: holds[0]?.site?.toString(),
      }));
  }

  async inspect(name: string): Promise<Inspection> {
    if (this.#runtime.closed) throw new ClientClosedError();
    const key = this.#port.keyPrefix + this.#checkName(name);
    const reply = await this.#executor.ask(inspect, [key, fairQueueKey(key), tokenKey(key), takenPermitsKey(key)], []);
    return inspectionOf(name, this.id, reply);
  }

  close(options: CloseOptions = {}): Promise<void> {
    try {
      checkCloseOptions(options);
    } catch (error) {
      return boundRejection(error);
    }
    this.#closing ??= runOutside(() => this.#close(options));
    return this.#closing;
  }

  async #close({ releaseHolds = false }: CloseOptions): Promise<void> {
    const runtime = this.#runtime;
    runtime.closed = true;
    const closed = new ClientClosedError();
    runtime.entries.rejectWaiters(closed);
    runtime.entries.abandonTries();
    runtime.compensations.hurry();
    // A release that is under way is waited for.
    const open = [...this.#tenures()].filter((tenure) => !tenure.ending);
    // Every section is told before the first lock is freed: from then on another owner can be inside.
    for (const tenure of open) tenure.abandon(closed, releaseHolds);
    if (releaseHolds) for (const tenure of open) tenure.free();
    await within(runtime.clock.clock, runtime.options.commandTimeout, this.#whenReleased());
    for (const tenure of [...this.#tenures()]) tenure.abandon(closed);
    runtime.watchdog.close();
    runtime.entries.close(closed);
    runtime.compensations.close();
    this.#executor.closed = true;
    this.#topology.close();
    this.#leaveProcess();
  }

  async #whenReleased(): Promise<void> {
    // A try that was under way when its call was rejected may yet take the lock, which is then released.
    await this.#runtime.entries.whenQuiet();
    await this.#runtime.compensations.whenDone();
  }

  *#tenures(): Iterable<Tenure> {
    for (const entry of this.#runtime.entries) yield* entry.holders;
  }

  [asyncDispose](): Promise<void> {
    return this.close();
  }
}

showAs(RedisLockClient, ({ id }) => ({ id }));
