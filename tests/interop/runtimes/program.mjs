// @ts-check
/*
 * Checks a runtime other than Node.js: <runtime> program.mjs <url>. The program uses the built package and exits with 1
 * if a check fails.
 */
import { createClient, LockContext } from 'holdfast';

const url = process.argv[2] ?? '';
const client = createClient({ url });
/** @type {string[]} */
const faults = [];
process.on('unhandledRejection', (error) => void faults.push(`unhandled: ${String(error)}`));

/** @param {string} title @param {unknown} value @param {unknown} expected */
const is = (title, value, expected) => {
  if (value !== expected) faults.push(`${title}: ${String(value)}, not ${String(expected)}`);
};

/** @param {string} title @param {() => Promise<void>} work */
async function step(title, work) {
  let limit;
  const late = new Promise((_, reject) => (limit = setTimeout(() => reject(new Error('it never ended')), 5_000)));
  await Promise.race([work(), late]).catch((/** @type {unknown} */ error) => faults.push(`${title}: ${String(error)}`));
  clearTimeout(limit);
}
/** @param {Promise<unknown>} call @returns {Promise<unknown>} */
const codeOf = (call) =>
  call.then(
    () => 'none',
    (/** @type {unknown} */ error) => /** @type {{ code?: string }} */ (error).code,
  );

/** Whether bare calls are bound to the code that awaits them; where they are not, they are refused and take nothing. */
let binds = false;
await step('bare calls', async () => {
  const lock = client.getLock('bare');
  const refused = await codeOf(lock.lock());
  binds = refused === 'none';
  if (!binds) {
    is('lock()', refused, 'ERR_LOCK_UNSUPPORTED_RUNTIME');
    is('tryLock()', await codeOf(lock.tryLock()), 'ERR_LOCK_UNSUPPORTED_RUNTIME');
    is('taken', await lock.isLocked(), false);
  }
});
if (binds) {
  await step('bare calls that work', async () => {
    const lock = client.getLock('own');
    await lock.lock();
    is('nested', await lock.tryLock(), true);
    is('count', await lock.getHoldCount(), 2);
    await lock.unlock();
    await lock.unlock();
    await client.getLock('bare').forceUnlock();
  });
}
await step('withLock, nested', async () => {
  const lock = client.getLock('with');
  const inside = await lock.withLock(() => lock.withLock(async () => lock.getHoldCount()));
  is('count', inside, 2);
  is('locked', await lock.isLocked(), false);
});
await step('acquire, run, release', async () => {
  const lock = client.getLock('acquired');
  const hold = await lock.acquire();
  is('nested by run', await hold.run(() => lock.withLock(() => lock.getHoldCount())), 2);
  is('a stranger', await codeOf(lock.acquire({ waitTime: 50 })), binds ? 'none' : 'ERR_LOCK_TIMEOUT');
  await lock.forceUnlock();
  await hold.release().catch(() => undefined);
});
await step('a context', async () => {
  const lock = client.getLock('context', { context: new LockContext() });
  await lock.lock();
  is('nested', await lock.tryLock(), true);
  await lock.unlock();
  await lock.unlock();
  is('locked', await lock.isLocked(), false);
});
await step('at most one at a time', async () => {
  const other = createClient({ url });
  let [inside, most, sections] = [0, 0, 0];
  const flows = [client, other].flatMap((each) => Array.from({ length: 5 }, () => each.getLock('contended')));
  await Promise.all(
    flows.map(async (lock) => {
      for (let turn = 0; turn < 10; turn += 1) {
        await lock.withLock(async () => {
          inside += 1;
          most = Math.max(most, inside);
          await new Promise((resolve) => setTimeout(resolve, 1));
          inside -= 1;
          sections += 1;
        });
      }
    }),
  );
  is('at once', most, 1);
  is('sections', sections, 100);
  await other.close();
});
await step('other kinds', async () => {
  await client.getFairLock('fair').withLock(() => undefined);
  await client
    .getReadWriteLock('halves')
    .writeLock()
    .withLock(() => undefined);
  const semaphore = client.getSemaphore('permits');
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  await semaphore.release();
  is('token', (await client.getFencedLock('fenced').withLock((hold) => hold.token)) >= 1n, true);
});
await step('close', () => client.close());
await new Promise((resolve) => setTimeout(resolve, 50));
console.log(JSON.stringify({ binds, faults }));
process.exitCode = faults.length > 0 ? 1 : 0;
