import { afterEach, expect, test } from '@jest/globals';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { closeClients, inFlow, openClient, outcome } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { admin, freshName, leavesKeys } from '../../support/redis.js';
import { startServer } from '../../support/servers/servers.js';

/* What a viewer of the page learns of the keys of the application, and what Redis sends for it. */

leavesKeys('keys of the application');

afterEach(async () => {
  await closeServers();
  await closeClients();
});

const query = (name: string): string => `?select=${encodeURIComponent(name)}&search=${encodeURIComponent(name)}`;

/** Opens the page on one name, and waits until this name was read some times. Resolves with everything that was sent. */
async function lookAt(base: string, name: string): Promise<string> {
  const page = await OpenPage.open(base, query(name));
  let text = '';
  page.response.on('data', (part: string) => (text += part));
  await page.shows((shown) => shown.last('selected') != null, 'the selected name');
  const listedAt = page.last('summary')?.listedAt;
  await page.shows((shown) => shown.last('summary')?.listedAt !== listedAt, 'a listing');
  expect(page.last('selected')).toMatchObject({ row: { kind: 'free', value: null, owners: [], permits: [] } });
  expect(page.rows.size).toBe(0);
  page.close();
  return text;
}

test('Redis sends nothing of large strings and hashes of the application for a page that selects them', async () => {
  // Other tests read from the server of the suite meanwhile.
  const server = await startServer();
  try {
    const client = await openClient({ url: `redis://127.0.0.1:${server.port}` });
    const base = await serve(createInspector({ client, authorize: () => true }));
    const [text, hash, many] = [freshName('text'), freshName('hash'), freshName('many')];
    await server.command('SET', text, 'x'.repeat(20_000_000));
    await server.command('HSET', hash, 'avatar', 'x'.repeat(2_000_000), 'name', 'alice');
    const fields = Array.from({ length: 2_000 }, (_, at) => [`f${at}`, 'x'.repeat(1_000)]);
    await server.command('HSET', many, ...fields.flat());
    const sent = async (): Promise<number> =>
      Number(/total_net_output_bytes:(\d+)/.exec(String(await server.command('INFO', 'stats')))?.[1]);
    const before = await sent();
    for (const name of [text, hash, many]) await lookAt(base, name);
    expect((await sent()) - before).toBeLessThan(500_000);
  } finally {
    await closeServers();
    await closeClients();
    await server.stop();
  }
});

test('a number of the application is no counter: not by its name, and not by a sorted set beside it', async () => {
  const client = await openClient();
  const base = await serve(createInspector({ client, authorize: () => true, actions: true }));
  const code = freshName('code');
  await admin().set(code, '481516');
  await admin().zadd(`{${code}}:timeout`, 1, 'alice');
  expect(await lookAt(base, code)).not.toContain('481516');
  const listed = [];
  for await (const { name } of client.list()) listed.push(name);
  expect(listed).toEqual([]);
});

test('a semaphore is shown that a client used, or that a call waits for', async () => {
  const [client, other] = [await openClient(), await openClient()];
  const base = await serve(createInspector({ client, authorize: () => true }));
  const [used, waited] = [freshName('used'), freshName('waited')];
  await other.getSemaphore(used, { permits: 5 }).acquire(2);
  await admin().set(waited, '0');
  const abort = new AbortController();
  const call = outcome(inFlow(() => other.getSemaphore(waited).acquire(1, { signal: abort.signal })));
  for (const [name, value] of [
    [used, '3'],
    [waited, '0'],
  ] as const) {
    const page = await OpenPage.open(base, query(name));
    await page.shows((shown) => shown.last('selected')?.row.value === value, name);
    expect(page.last('selected')).toMatchObject({ row: { kind: 'counter', value } });
    page.close();
  }
  abort.abort();
  await call;
});
