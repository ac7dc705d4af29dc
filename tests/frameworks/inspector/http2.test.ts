import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInspector } from '../../../src/integrations/inspector/index.js';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

const closing: (() => void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) close();
  await closeClients();
});

/** Opens a connection of HTTP/2 to a handler of requests. */
async function connectTo(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<{
  session: ClientHttp2Session;
  origin: string;
}> {
  const server = createServer((request, response) =>
    handle(request as unknown as IncomingMessage, response as unknown as ServerResponse),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const session = connect(origin);
  closing.push(() => {
    session.destroy();
    server.close();
  });
  return { session, origin };
}

async function post(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: string,
): Promise<[number, string]> {
  const stream = session.request({ ':method': 'POST', 'content-type': 'application/json', ...headers });
  let [status, text] = [0, ''];
  stream.on('response', (received) => (status = received[':status'] ?? 0));
  stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  stream.end(body);
  await once(stream, 'end');
  return [status, text];
}

test('over HTTP/2, a page frees a lock, and a page of another site does not', async () => {
  const client = await openClient();
  const hold = await holdElsewhere(client.getLock(freshName()));
  const page = createInspector({ client, authorize: () => true, actions: true });
  const { session, origin } = await connectTo(page);
  const events = session.request({ ':path': '/events' });
  let text = '';
  events.setEncoding('utf8').on('data', (part: string) => (text += part));
  await until(() => /"csrf":"[^"]+"/.test(text), 'the token of the page');
  const csrf = /"csrf":"([^"]+)"/.exec(text)![1]!;
  const body = JSON.stringify({ name: hold.lockName, owner: hold.owner, confirm: hold.lockName });
  const unlock = (from: string) => post(session, { ':path': '/unlock', origin: from, 'holdfast-csrf': csrf }, body);
  expect(await unlock('http://other.example')).toEqual([403, expect.stringContaining('another site')]);
  expect(await client.getLock(hold.lockName).isLocked()).toBe(true);
  expect(await unlock(origin)).toEqual([200, '{"freed":true}']);
  expect(await client.getLock(hold.lockName).isLocked()).toBe(false);
  page.close();
});
