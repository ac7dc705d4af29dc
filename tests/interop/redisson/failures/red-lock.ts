import { now } from '../../../../bench/monotonic.js';
import { ended, span, type FaultRow, type FaultSetting } from './fault-setting.js';

const NAME = 'fault';
const WAIT_MS = 10_000;
const LEASE_MS = 30_000;

/** Three servers, the first of which accepts and does not answer. */
async function servers(setting: FaultSetting): Promise<{ urls: string[]; hang: () => Promise<void> }> {
  const all = [await setting.server(), await setting.server(), await setting.server()];
  setting.onEnd(async () => all[0]!.resume());
  return { urls: all.map(({ url }) => url), hang: () => all[0]!.pause() };
}

export const RED_LOCK: FaultRow = {
  fault: `RedLock, \`tryLock(${WAIT_MS / 1_000} s, ${LEASE_MS / 1_000} s)\`, while one of three servers hangs`,
  async redisson(setting) {
    const { urls, hang } = await servers(setting);
    const jvm = await setting.jvm({ addresses: [urls[0]!] });
    await jvm.createClient({ client: 'server-1', addresses: [urls[1]!] });
    await jvm.createClient({ client: 'server-2', addresses: [urls[2]!] });
    const members = ['client', 'server-1', 'server-2'].map((client) => ({ kind: 'lock', name: NAME, client }));
    const red = { kind: 'red', members };
    const thread = jvm.thread('t');
    await thread.call(red, 'tryLock', WAIT_MS, LEASE_MS, 'MILLISECONDS');
    await thread.call(red, 'unlock');
    await hang();
    const from = now();
    const result = await ended(
      thread.call<boolean>(red, 'tryLock', WAIT_MS, LEASE_MS, 'MILLISECONDS').then((a) => a.result),
    );
    return `${result} after ${span(now() - from)}`;
  },
  async holdfast(setting) {
    const { urls, hang } = await servers(setting);
    const clients = await Promise.all(urls.map((url) => setting.holdfast(url)));
    const red = clients[0]!.getRedLock(...clients.map((client) => client.getLock(NAME)));
    await red.withLock(() => undefined);
    await hang();
    const from = now();
    const result = await ended(red.tryLock(WAIT_MS, LEASE_MS));
    return `${result} after ${span(now() - from)}`;
  },
};
