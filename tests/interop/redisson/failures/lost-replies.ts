import { pause, type FaultProxy } from './fault-proxy.js';
import { ended, heldNow, lockNamed, type FaultRow, type FaultSetting } from './fault-setting.js';

const NAME = 'fault';
const none = (): Promise<void> => Promise.resolve();

/** The reply to the next script on the lock is lost, and the connection with it. */
function loseReply(proxy: FaultProxy, times = 1): void {
  proxy.cutAfter({ command: 'EVALSHA', where: ({ args }) => args.includes(NAME), times });
}

async function replicated(setting: FaultSetting) {
  const master = await setting.server();
  const replica = await setting.server({ replicaOf: master.address });
  while ((await master.admin.info('replication')).match(/connected_slaves:1/) === null) await pause(20);
  const [toMaster, toReplica] = [await setting.proxy(master), await setting.proxy(replica)];
  return { master, toMaster, addresses: [toMaster.url, toReplica.url] };
}

export const LOST_REPLIES: readonly FaultRow[] = [
  {
    fault: 'The reply to `lock()` is lost',
    async redisson(setting) {
      const server = await setting.server();
      const proxy = await setting.proxy(server);
      const thread = (await setting.jvm({ addresses: [proxy.url] })).thread('t');
      await thread.call(lockNamed('warm'), 'lock');
      await thread.call(lockNamed('warm'), 'unlock');
      loseReply(proxy);
      const result = await ended(thread.call(lockNamed(NAME), 'lock'));
      await pause(1_000);
      return `${result}; afterwards: ${await heldNow(server, NAME)}, without an owner`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const proxy = await setting.proxy(server);
      const client = await setting.holdfast(proxy.url);
      await client.getLock('warm').withLock(none);
      loseReply(proxy);
      const call = client.getLock(NAME).acquire();
      const result = await ended(call);
      const inside = await heldNow(server, NAME);
      await (await call).release();
      return `${result}: ${inside}; after \`unlock()\`: ${await heldNow(server, NAME)}`;
    },
  },
  {
    fault: 'The same, with a replica',
    async redisson(setting) {
      const { master, toMaster, addresses } = await replicated(setting);
      const thread = (await setting.jvm({ addresses, mode: 'replica' })).thread('t');
      await thread.call(lockNamed('warm'), 'lock');
      await thread.call(lockNamed('warm'), 'unlock');
      loseReply(toMaster);
      const result = await ended(thread.call(lockNamed(NAME), 'lock'));
      const inside = await heldNow(master, NAME);
      await thread.call(lockNamed(NAME), 'unlock').catch(none);
      return `${result}: ${inside}; after \`unlock()\`: ${await heldNow(master, NAME)}`;
    },
    async holdfast(setting) {
      const { master, toMaster } = await replicated(setting);
      const client = await setting.holdfast(toMaster.url, { replicas: { acks: 1 } });
      await client.getLock('warm').withLock(none);
      loseReply(toMaster);
      const call = client.getLock(NAME).acquire();
      const result = await ended(call);
      const inside = await heldNow(master, NAME);
      await (await call).release();
      return `${result}: ${inside}; after \`unlock()\`: ${await heldNow(master, NAME)}`;
    },
  },
  {
    fault: 'The reply to a nested `unlock()` is lost; it is called again if it failed',
    async redisson(setting) {
      const server = await setting.server();
      const proxy = await setting.proxy(server);
      const thread = (await setting.jvm({ addresses: [proxy.url] })).thread('t');
      await thread.call(lockNamed(NAME), 'lock');
      await thread.call(lockNamed(NAME), 'lock');
      await thread.call(lockNamed('warm'), 'lock');
      await thread.call(lockNamed('warm'), 'unlock');
      loseReply(proxy);
      const first = await ended(thread.call(lockNamed(NAME), 'unlock'));
      const second = first === 'succeeds' ? '' : `, then ${await ended(thread.call(lockNamed(NAME), 'unlock'))}`;
      return `${first}${second}; the outer hold: ${await heldNow(server, NAME)}`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const proxy = await setting.proxy(server);
      const client = await setting.holdfast(proxy.url);
      const outer = await client.getLock(NAME).acquire();
      const inner = await outer.run(async () => client.getLock(NAME).acquire());
      loseReply(proxy);
      const first = await ended(inner.release());
      const state = await heldNow(server, NAME);
      await outer.release();
      return `${first}; the outer hold: ${state}`;
    },
  },
];
