import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { Jvm } from './jvm.js';

/* An owner of a JVM among the holders: in the list, on the page, and freed by its id. */

let server: RedisServer;
let jvm: Jvm;
let client: LockClient;

beforeAll(async () => {
  server = await startServer();
  jvm = await Jvm.start();
  await jvm.createClient({ addresses: [server.url] });
  client = createClient({ url: server.url, clientName: 'page' });
});
afterEach(closeServers);
afterAll(async () => {
  await client.close();
  await jvm.close();
  await server.stop();
});

test('the page shows an owner of Redisson by its id, without a process, beside an owner of this client', async () => {
  const thread = jvm.thread('T1');
  await thread.call({ kind: 'lock', name: 'of-jvm' }, 'lock');
  const hold = await client.getLock('of-node').acquire();
  const page = await OpenPage.open(await serve(createInspector({ client, authorize: () => true })));
  await page.shows(({ rows }) => rows.has('of-jvm') && rows.has('of-node'), 'both rows');
  const owner = await thread.owner();
  expect(page.rows.get('of-jvm')).toMatchObject({
    kind: 'lock',
    owners: [{ owner, holdCount: 1, isThisClient: false, process: null }],
  });
  expect(page.rows.get('of-node')).toMatchObject({ owners: [{ isThisClient: true, process: { clientName: 'page' } }] });
  expect(await client.forceUnlock('of-jvm', { ifOwner: owner })).toBe(true);
  await page.shows(({ rows }) => !rows.has('of-jvm'), 'the lock of the JVM is gone');
  await hold.release();
  page.close();
});
