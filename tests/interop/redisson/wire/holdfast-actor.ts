import type { LockClient } from '../../../../src/client/create-client.js';
import { LockContext } from '../../../../src/ownership/lock-context.js';
import { callLock, LOCKS, type AnyLock } from '../../../support/java/java-lock-calls.js';
import { SHARED_CALLS } from '../../../support/java/java-shared-calls.js';
import type { JvmObject } from '../jvm.js';

/** A LockContext in place of one thread of Java. It makes the calls of a step. */
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
    const shared = SHARED_CALLS[object.kind];
    if (shared !== undefined) {
      const client = this.#clientOf(object.client ?? this.name);
      return shared(client, this.prefix + object.name!, plain, args, this.#abort.signal);
    }
    return callLock(this.#lock(object), plain, numbersBeforeUnit(args), this.#abort.signal, args[0] as LockContext);
  }

  /** On the wire, while it holds the lock. */
  ownerOf(object: JvmObject): string | undefined {
    if (object.kind in SHARED_CALLS) return undefined;
    return this.#lock(object).currentHold()?.owner;
  }

  #lock({ kind, name = '', client: of, members = [], values = [] }: JvmObject): AnyLock {
    const client = of === undefined ? this.#client : this.#clientOf(of);
    const context = this.context;
    const full = this.prefix + name;
    if (kind === 'multi') return client.getMultiLock(...members.map((member) => this.#lock(member)), { context });
    if (kind === 'red') return client.getRedLock(...members.map((member) => this.#lock(member)), { context });
    const make = LOCKS[kind];
    if (make === undefined) throw new Error(`no such kind here: ${kind}`);
    return make(client, full, context, values);
  }
}

function numbersBeforeUnit(args: readonly unknown[]): number[] {
  const unit = args.indexOf('MILLISECONDS');
  return unit < 0 ? [] : args.slice(0, unit).map(Number);
}
