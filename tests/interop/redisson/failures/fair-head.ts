import { now } from '../../../../bench/monotonic.js';
import { startWorker } from '../../../support/processes/child.js';
import { until } from '../../../support/time/until.js';
import { pause } from './fault-proxy.js';
import { span, type FaultRow } from './fault-setting.js';

const NAME = 'fault';
const FAIR = { kind: 'fair', name: NAME };
const LEASE_MS = 30_000;
/** Longer than Redisson's `fairLockWaitTimeout` and the lease. */
const PATIENCE_MS = 400_000;

export const FAIR_HEAD: FaultRow = {
  fault: 'The first waiter of a fair lock is killed, then the lock is released; when does the second enter?',
  slow: true,
  async redisson(setting) {
    const server = await setting.server();
    const options = { addresses: [server.url] };
    const [holder, first, second] = [
      await setting.jvm(options),
      await setting.jvm(options),
      await setting.jvm(options),
    ];
    const queued = (length: number): Promise<void> =>
      until(async () => (await server.admin.llen(`redisson_lock_queue:{${NAME}}`)) === length, `${length} wait`);
    await holder.thread('t').call(FAIR, 'lock', LEASE_MS, 'MILLISECONDS');
    first
      .thread('t')
      .call(FAIR, 'lock')
      .catch(() => undefined);
    await queued(1);
    const waiting = second.thread('t').call(FAIR, 'lock');
    await queued(2);
    await first.kill9();
    await pause(1_000);
    const { from } = await holder.thread('t').call(FAIR, 'unlock');
    const limit = pause(PATIENCE_MS).then(() => undefined);
    const entered = await Promise.race([waiting, limit]);
    return entered ? `${span(entered.until - from)} after the release` : `not within ${span(PATIENCE_MS)}`;
  },
  async holdfast(setting) {
    const server = await setting.server();
    const workers = await Promise.all([startWorker(), startWorker(), startWorker()]);
    for (const worker of workers) {
      setting.onEnd(() => worker.kill9());
      await worker.createClient({ url: server.url });
    }
    const [holder, first, second] = workers.map((worker) => worker.flow('t'));
    const spec = { factory: 'getFairLock', name: NAME };
    const queued = (length: number): Promise<void> =>
      until(async () => (await server.admin.llen(`redisson_lock_queue:{${NAME}}`)) === length, `${length} wait`);
    await holder!.lock(spec, LEASE_MS);
    first!.lock(spec).catch(() => undefined);
    await queued(1);
    const waiting = second!.lock(spec).then(() => now());
    await queued(2);
    await workers[1].kill9();
    await pause(1_000);
    const from = now();
    await holder!.unlock(spec);
    return `${span((await waiting) - from)} after the release`;
  },
};
