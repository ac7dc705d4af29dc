import type { LockClient } from '../../../src/client.js';
import { LockContext } from '../../../src/core/lock-context.js';
import type { FencedLock } from '../../../src/primitives/fenced-lock.js';
import type { Lock } from '../../../src/primitives/lock.js';
import { callShared, SHARED_KINDS } from './holdfast-shared.js';
import type { JvmObject } from '../jvm.js';

/** One thread of Java, as a LockContext of ours: makes the calls that a step names. */
export class HoldfastActor {
  readonly context = new LockContext();
  #abort = new AbortController();

  constructor(
    private readonly clients: ReadonlyMap<string, LockClient>,
    readonly name: string,
    private readonly prefix: string,
  ) {}

  get #client(): LockClient {
    return this.#clientOf(this.name);
  }

  #clientOf(name: string): LockClient {
    return this.clients.get(name.split('.')[0]!)!;
  }

  interrupt(): void {
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  async call(object: JvmObject, method: string, args: readonly unknown[]): Promise<unknown> {
    const plain = method.replace(/Async$/, '');
    if (SHARED_KINDS.has(object.kind)) {
      const client = this.#clientOf(object.client ?? this.name);
      return callShared(client, object.kind, this.prefix + object.name!, plain, args, this.#abort.signal);
    }
    const lock = this.#lock(object);
    if (plain === 'isHeldByThread') return lock.isHeldBy(args[0] as LockContext);
    return invoke(lock, plain, numbersBeforeUnit(args), this.#abort.signal);
  }

  /** On the wire, while it holds the lock. */
  ownerOf(object: JvmObject): string | undefined {
    if (SHARED_KINDS.has(object.kind)) return undefined;
    return this.#lock(object).currentHold()?.owner;
  }

  #lock({ kind, name = '', client: of, members = [], values = [] }: JvmObject): Lock | FencedLock {
    const client = of === undefined ? this.#client : this.#clientOf(of);
    const context = this.context;
    const full = this.prefix + name;
    switch (kind) {
      case 'lock':
        return client.getLock(full, { context });
      case 'non-reentrant':
        return client.getNonReentrantLock(full, { context });
      case 'fair':
        return client.getFairLock(full, { context });
      case 'non-reentrant-fair':
        return client.getNonReentrantFairLock(full, { context });
      case 'read':
        return client.getReadWriteLock(full, { context }).readLock();
      case 'write':
        return client.getReadWriteLock(full, { context }).writeLock();
      case 'spin':
        return client.getSpinLock(full, { context });
      case 'spin-constant':
        return client.getSpinLock(full, { context, backOff: { delay: 64 } });
      case 'fenced':
        return client.getFencedLock(full, { context });
      case 'group':
        return client.getMultiLock(full, values, { context });
      case 'multi':
        return client.getMultiLock(...members.map((member) => this.#lock(member)), { context });
      case 'red':
        return client.getRedLock(...members.map((member) => this.#lock(member)), { context });
      default:
        throw new Error(`no such kind here: ${kind}`);
    }
  }
}

function numbersBeforeUnit(args: readonly unknown[]): number[] {
  const unit = args.indexOf('MILLISECONDS');
  return unit < 0 ? [] : args.slice(0, unit).map(Number);
}

async function invoke(
  lock: Lock | FencedLock,
  method: string,
  [first, second]: readonly number[],
  signal: AbortSignal,
): Promise<unknown> {
  switch (method) {
    case 'lock':
    case 'lockInterruptibly':
      return lock.lock(first, { signal });
    case 'tryLock':
      return lock.tryLock(first, second, { signal });
    case 'lockAndGetToken':
      return Number(await (lock as FencedLock).lockAndGetToken(first, { signal }));
    case 'tryLockAndGetToken': {
      const token = await (lock as FencedLock).tryLockAndGetToken(first, second, { signal });
      return token === null ? null : Number(token);
    }
    case 'getToken':
      return Number(await (lock as FencedLock).getToken());
    case 'unlock':
      return lock.unlock();
    case 'forceUnlock':
      return lock.forceUnlock();
    case 'isLocked':
      return lock.isLocked();
    case 'isHeldByCurrentThread':
      return lock.isHeldByCurrentContext();
    case 'getHoldCount':
      return lock.getHoldCount();
    case 'remainTimeToLive':
      return lock.remainTimeToLive();
    default:
      throw new Error(`no such method here: ${method}`);
  }
}
