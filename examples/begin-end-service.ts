// How do I hold a lock between two calls that do not know each other, such as begin() and end() of a service?
import { setImmediate as otherFlow } from 'node:timers/promises';
import { createClient, LockContext, type Lock } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

/** Edit sessions on documents. Each call may come from another request; the session's context owns the lock. */
class Editing {
  readonly #sessions = new Map<string, Lock>();

  async begin(session: string, document: string): Promise<boolean> {
    // A context on the handle: every call on the handle acts for this owner, from any flow.
    const lock = client.getLock(`example:document:${document}`, { context: new LockContext() });
    if (!(await lock.tryLock())) return false;
    this.#sessions.set(session, lock);
    return true;
  }

  /** Returns the hold count inside: calls of the session re-enter. */
  async save(session: string): Promise<number> {
    const lock = this.#lockOf(session);
    await lock.lock();
    try {
      return await lock.getHoldCount();
    } finally {
      await lock.unlock();
    }
  }

  async end(session: string): Promise<void> {
    const lock = this.#lockOf(session);
    this.#sessions.delete(session);
    await lock.unlock();
  }

  #lockOf(session: string): Lock {
    const lock = this.#sessions.get(session);
    if (lock === undefined) throw new Error(`no session ${session}`);
    return lock;
  }
}

const editing = new Editing();
const request = async <T>(call: () => Promise<T>): Promise<T> => {
  await otherFlow(); // each call is a separate request
  return call();
};

console.log(`ann begins: ${await request(() => editing.begin('ann', 'contract'))}`);
console.log(`bob begins: ${await request(() => editing.begin('bob', 'contract'))}`);
console.log(`ann saves, hold count ${await request(() => editing.save('ann'))}`);
await request(() => editing.end('ann'));
console.log(`bob begins: ${await request(() => editing.begin('bob', 'contract'))}`);
await request(() => editing.end('bob'));
