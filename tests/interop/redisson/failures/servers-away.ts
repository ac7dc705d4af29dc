import { now } from '../../../../bench/monotonic.js';
import { startWorker } from '../../../support/processes/child.js';
import { pause } from './fault-proxy.js';
import { ended, heldNow, lockNamed, span, type FaultRow } from './fault-setting.js';

const NAME = 'fault';
const WATCHDOG_MS = 3_000;

const settled = async (call: Promise<unknown>): Promise<string> => {
  const from = now();
  return `${await ended(call)} after ${span(now() - from)}`;
};

export const SERVERS_AWAY: readonly FaultRow[] = [
  {
    fault: 'The subscriber is cut and the lock released at that moment, while one waits (lease 30 s)',
    async redisson(setting) {
      const server = await setting.server();
      const holder = (await setting.holdfast(server.url)).getLock(NAME);
      const hold = await holder.acquire({ leaseTime: 30_000 });
      const thread = (await setting.jvm({ addresses: [server.url] })).thread('t');
      const waiting = thread.call(lockNamed(NAME), 'lock');
      await pause(2_000);
      await Promise.all([server.killPubsub(), hold.release()]);
      const freedAt = now();
      return `enters ${span((await waiting).until - freedAt)} after the release`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const hold = await (await setting.holdfast(server.url)).getLock(NAME).acquire({ leaseTime: 30_000 });
      const waiter = await setting.holdfast(server.url);
      const waiting = waiter
        .getLock(NAME)
        .acquire()
        .then(() => now());
      await pause(2_000);
      await Promise.all([server.killPubsub(), hold.release()]);
      const freedAt = now();
      return `enters ${span((await waiting) - freedAt)} after the release`;
    },
  },
  {
    fault: 'The server stands still (SIGSTOP) before `tryLock(2 s)` and continues later',
    async redisson(setting) {
      const server = await setting.server();
      const thread = (await setting.jvm({ addresses: [server.url] })).thread('t');
      await thread.call(lockNamed(NAME), 'lock');
      await thread.call(lockNamed(NAME), 'unlock');
      await server.pause();
      const result = await settled(thread.call(lockNamed(NAME), 'tryLock', 2_000, 30_000, 'MILLISECONDS'));
      server.resume();
      await pause(1_000);
      return `${result}; 1 s after the server continues: ${await heldNow(server, NAME)}`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const client = await setting.holdfast(server.url);
      await client.getLock(NAME).withLock(() => undefined);
      await server.pause();
      const result = await settled(client.getLock(NAME).tryLock(2_000, 30_000));
      server.resume();
      await pause(1_000);
      return `${result}; 1 s after the server continues: ${await heldNow(server, NAME)}`;
    },
  },
  {
    fault: `Redis is killed and comes back empty while one holds the lock (watchdog ${WATCHDOG_MS / 1_000} s)`,
    async redisson(setting) {
      const server = await setting.server();
      const thread = (await setting.jvm({ addresses: [server.url], lockWatchdogTimeout: WATCHDOG_MS })).thread('t');
      await thread.call(lockNamed(NAME), 'lock');
      await server.restart();
      await pause(3 * WATCHDOG_MS);
      const asked = await ended(thread.call(lockNamed(NAME), 'unlock'));
      return `is not told; its \`unlock()\`, ${span(3 * WATCHDOG_MS)} later, ${asked}`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const client = await setting.holdfast(server.url, { lockWatchdogTimeout: WATCHDOG_MS });
      const hold = await client.getLock(NAME).acquire();
      const restarting = server.restart();
      const from = now();
      await Promise.race([new Promise((told) => hold.signal.addEventListener('abort', told)), pause(3 * WATCHDOG_MS)]);
      const reason = hold.signal.aborted ? String((hold.signal.reason as { reason?: string }).reason) : 'nothing';
      await restarting;
      return `\`hold.signal\` aborts after ${span(now() - from)} ("${reason}")`;
    },
  },
  {
    fault: 'The holder is stopped (SIGSTOP) for longer than its lease of 1 s, another owner enters, it continues',
    async redisson(setting) {
      const server = await setting.server();
      const jvm = await setting.jvm({ addresses: [server.url] });
      const thread = jvm.thread('t');
      await thread.call(lockNamed(NAME), 'lock', 1_000, 'MILLISECONDS');
      jvm.signal('SIGSTOP');
      await (await setting.holdfast(server.url)).getLock(NAME).acquire();
      jvm.signal('SIGCONT');
      await pause(500);
      return `is not told; its \`unlock()\` ${await ended(thread.call(lockNamed(NAME), 'unlock'))}`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const worker = await startWorker();
      setting.onEnd(() => worker.close());
      await worker.createClient({ url: server.url });
      await worker.flow('t').acquire(NAME, { leaseTime: 1_000 });
      await worker.pause();
      await (await setting.holdfast(server.url)).getLock(NAME).acquire();
      const from = now();
      worker.resume();
      await worker.nextEvent('leaseLost');
      return `is told (\`signal\`, \`leaseLost\`) ${span(now() - from)} after it continues`;
    },
  },
];
