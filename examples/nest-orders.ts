// How does a NestJS application lock its methods, and finish its work when it stops?
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { tsImport } from 'tsx/esm/api';
import { openRedis } from './support/redis.js';

/** What nest/orders.ts exports. Its decorators need settings of TypeScript that the other examples do not have. */
interface Application {
  start(url: string): Promise<{
    readonly app: { close(): Promise<void> };
    readonly address: string;
    report(begun: () => void): Promise<void>;
  }>;
}

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
const settings = { parentURL: import.meta.url, tsconfig: new URL('./nest/tsconfig.json', import.meta.url).pathname };
const { start } = (await tsImport('./nest/orders.ts', settings)) as Application;

const { app, address, report } = await start(redis.url);
const pay = (id: string): Promise<Response> => fetch(`${address}/orders/${id}/pay`, { method: 'POST' });

const first = pay('7');
while (!(await client.getLock('example:nest:order:7').isLocked())) await pause(5);
const second = await pay('7');
console.log(`busy: ${second.status} ${second.statusText}, Retry-After: ${second.headers.get('retry-after')} s`);
console.log(`another order: ${await (await pay('8')).text()}`);
console.log(`first request: ${await (await first).text()}`);

// The report runs when the application stops, and no request waits for it.
let written: Promise<void> | undefined;
await new Promise<void>((begun) => {
  written = report(begun);
});
await app.close();
console.log('the application has stopped');
await written;
console.log(`locked afterwards: ${await client.getLock('example:nest:report').isLocked()}`);
