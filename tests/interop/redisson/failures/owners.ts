import { pause } from './fault-proxy.js';
import { lockNamed, type FaultRow } from './fault-setting.js';

const NAME = 'fault';

export const OWNERS: readonly FaultRow[] = [
  {
    fault: 'Two asynchronous calls of one thread, or flow, want the lock',
    async redisson(setting) {
      const server = await setting.server();
      const jvm = await setting.jvm({ addresses: [server.url] });
      const inside = await jvm.order<number>({ op: 'twoAsync', client: 'client', object: lockNamed(NAME) });
      return `${inside.result} are inside at once: one owner, hold count ${await server.admin.hvals(NAME).then(String)}`;
    },
    async holdfast(setting) {
      const server = await setting.server();
      const lock = (await setting.holdfast(server.url)).getLock(NAME);
      let inside = 0;
      let most = 0;
      const section = async (): Promise<void> => {
        await lock.lock();
        inside += 1;
        most = Math.max(most, inside);
        await pause(50);
        inside -= 1;
        await lock.unlock();
      };
      await Promise.all([section(), section()]);
      return `at most ${most} is inside at once: two owners, one waits`;
    },
  },
];
