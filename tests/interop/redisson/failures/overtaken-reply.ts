import { now } from '../../../../bench/monotonic.js';
import { pause, type FaultProxy } from './fault-proxy.js';
import { span, type FaultRow, type FaultSetting } from './fault-setting.js';

const NAME = 'fault';
const LEASE_MS = 30_000;

/**
 * A writer holds the lock. A waiter behind the proxy gets the reply to its second try, after its subscription, late.
 */
async function written(setting: FaultSetting) {
  const server = await setting.server();
  const proxy = await setting.proxy(server);
  const writer = await setting.holdfast(server.url);
  const hold = await writer.getReadWriteLock(NAME).writeLock().acquire({ leaseTime: LEASE_MS });
  return { proxy, release: () => hold.release() };
}

/** Returns when the reply went on its way: some time after the message. */
async function releaseBefore(proxy: FaultProxy, release: () => Promise<void>, wait: () => Promise<unknown>) {
  const held = proxy.holdReply({ command: 'EVALSHA', where: ({ args }) => args.includes(NAME), nth: 2 });
  const waiting = wait();
  await held.applied;
  // The proxy holds replies that Redis has sent or is about to send.
  await pause(200);
  await release();
  await pause(200);
  const repliedAt = now();
  held.lift();
  await waiting;
  return repliedAt;
}

export const OVERTAKEN_REPLY: FaultRow = {
  fault:
    'A writer leaves, and the message comes before the reply to the last try of a reader that goes to sleep (lease 30 s)',
  async redisson(setting) {
    const { proxy, release } = await written(setting);
    const thread = (await setting.jvm({ addresses: [proxy.url] })).thread('t');
    const read = { kind: 'read', name: NAME };
    await thread.call({ kind: 'read', name: 'warm' }, 'lock');
    await thread.call({ kind: 'read', name: 'warm' }, 'unlock');
    let enteredAt = NaN;
    const repliedAt = await releaseBefore(proxy, release, async () => {
      enteredAt = (await thread.call(read, 'lock')).until;
    });
    return `enters ${span(enteredAt - repliedAt)} after that reply`;
  },
  async holdfast(setting) {
    const { proxy, release } = await written(setting);
    const lock = (await setting.holdfast(proxy.url)).getReadWriteLock(NAME).readLock();
    let enteredAt = NaN;
    const repliedAt = await releaseBefore(proxy, release, async () => {
      await lock.acquire();
      enteredAt = now();
    });
    return `enters ${span(enteredAt - repliedAt)} after that reply`;
  },
};
