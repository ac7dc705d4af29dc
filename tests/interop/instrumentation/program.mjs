// @ts-check
/*
 * A service that locks while an agent observes it: node program.mjs <agent> <folder> <url> [late]. The packages are
 * those of the folder. `late`: the agent starts after the first calls of the client. The parent process receives the
 * records of the agent; this process prints nothing.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { AGENTS } from './agents.mjs';

const [agentName = '', folder = '', url = '', late] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const start = AGENTS[agentName];
if (start === undefined) throw new Error(`no agent ${agentName}`);

const early = late === undefined ? start(require) : undefined;
const { Redis } = /** @type {typeof import('ioredis')} */ (require('ioredis'));
const { createClient } = /** @type {typeof import('holdfast')} */ (require('holdfast'));

/**
 * @typedef {{ sections: number, seen: import('./agents.mjs').Seen[], afterwards: import('./agents.mjs').Seen[] }} Told
 */

/** @param {() => Promise<void>} work */
const run = (work) => work();

const redis = new Redis(url, { lazyConnect: true });
const [client, other] = [createClient({ redis }), createClient({ redis })];
// Most connect in their first request; `late`: long before.
if (late !== undefined) await contend('before');
const agent = early ?? start(require);
if (late !== undefined) require('ioredis');

/** One waits for a message that says that the other is done. @param {string} name */
async function contend(name, holder = run, waiter = run, work = () => Promise.resolve()) {
  /** @type {() => void} */
  let isHeld = () => undefined;
  const held = new Promise((resolve) => (isHeld = () => resolve(undefined)));
  const waits = new Promise((resolve) => other.events.on('waiting', resolve));
  const holding = holder(() =>
    client.getLock(name).withLock(async () => {
      isHeld();
      await waits;
      await work();
    }),
  );
  await held;
  await Promise.all([holding, waiter(() => other.getLock(name).withLock(work))]);
}
let sections = 0;
const section = async () => {
  sections += 1;
  await new Promise(setImmediate);
};

/** @param {string} name @returns {typeof run} */
const request = (name) => (work) => agent.inRequest(name, work);

// Connections that it opens for later requests no longer count as its own.
await agent.inRequest('earlier', () => contend('earlier'));
await agent.inRequest('bare', async () => {
  const lock = client.getLock('bare');
  await lock.lock();
  await section();
  await lock.unlock();
});
await agent.inRequest('nested', () =>
  client.getLock('nested').withLock(() => client.getLock('nested').withLock(section)),
);
await agent.inRequest('fair', async () => {
  const hold = await client.getFairLock('fair').acquire();
  await section();
  await hold.release();
});
await agent.inRequest('permits', async () => {
  const semaphore = client.getSemaphore('permits');
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  await section();
  await semaphore.release();
});
await agent.inRequest('read', async () => {
  await client.getLock('read').isLocked();
});
await contend('contended', request('holder'), request('waiter'), section);

const told = { sections, seen: await agent.seen() };
agent.stop?.();
if (agent.stop !== undefined) await agent.inRequest('stopped', () => client.getLock('stopped').withLock(section));
const afterwards = (await agent.seen()).slice(told.seen.length);
process.send?.({ ...told, afterwards });
await Promise.all([client.close(), other.close()]);
// Agents keep the process running.
setImmediate(() => process.exit());
