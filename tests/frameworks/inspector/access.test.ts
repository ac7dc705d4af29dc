import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { request as openRequest, type IncomingMessage } from 'node:http';
import type { LockClient } from '../../../src/client/create-client.js';
import { createInspector, type InspectorOptions } from '../../../src/integrations/inspector/index.js';
import {
  closeClients,
  holdElsewhere,
  openClient,
  openProxy,
  type ClientSettings,
} from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { freshName, testRedisUrl } from '../../support/redis.js';
import { limitedUser } from '../../support/servers/limited-user.js';

afterEach(async () => {
  await closeServers();
  await closeClients();
});

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** Sends a request with exactly these headers: `fetch` sets those that browsers set. */
function send(url: string, headers: Record<string, string> = {}, method = 'GET', body = ''): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = openRequest(url, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const ADMIN = { cookie: 'admin' };
const PATHS = ['/', '/inspector.css', '/inspector.js', '/events', '/unlock', '/nothing'];

async function start(given: Partial<InspectorOptions> = {}): Promise<{ base: string; client: LockClient }> {
  const client = await openClient();
  const authorize = ({ headers }: IncomingMessage): string | false => (headers.cookie === 'admin' ? 'alice' : false);
  return { client, base: await serve(createInspector({ client, authorize, ...given })) };
}

const codeOf = ({ text }: Reply): unknown => (JSON.parse(text) as { error: { code: unknown } }).error.code;

describe('createInspector', () => {
  test('refuses to be created without authorize, except where NODE_ENV is development', async () => {
    const client = await openClient();
    const before = process.env.NODE_ENV;
    try {
      for (const value of ['production', 'test', undefined]) {
        if (value === undefined) delete process.env.NODE_ENV;
        else process.env.NODE_ENV = value;
        expect(() => createInspector({ client })).toThrow(
          expect.objectContaining({ code: 'ERR_LOCK_INVALID_ARGUMENT', message: expect.stringContaining('authorize') }),
        );
      }
      process.env.NODE_ENV = 'development';
      const base = await serve(createInspector({ client }));
      expect((await send(base)).status).toBe(200);
      // Behind a proxy of this machine, everybody comes from this machine.
      for (const name of [
        'forwarded',
        'via',
        'x-real-ip',
        'x-forwarded-for',
        'x-forwarded-host',
        'x-forwarded-proto',
      ]) {
        expect([name, (await send(base, { [name]: '10.0.0.7' })).status]).toEqual([name, 403]);
      }
      expect(() => createInspector({ client, actions: true })).toThrow('authorize');
      expect(() => createInspector({ client, authorize: false as never })).toThrow('authorize');
    } finally {
      process.env.NODE_ENV = before;
    }
  });

  test('without authorize it admits this machine alone, also where NODE_ENV is development', async () => {
    const client = await openClient();
    const before = process.env.NODE_ENV;
    process.env.NODE_ENV = 'development';
    try {
      const inspector = createInspector({ client });
      for (const [address, status] of [
        ...['127.0.0.1', '127.8.0.1', '::1', '::ffff:127.0.0.1'].map((own) => [own, 200] as const),
        ...['10.0.0.7', '192.168.1.4', '::ffff:10.0.0.7', 'fe80::1', '2001:db8::127', '1.127.0.0'].map(
          (other) => [other, 403] as const,
        ),
      ]) {
        const base = await serve((request, response) => {
          Object.defineProperty(request.socket, 'remoteAddress', { value: address });
          inspector(request, response);
        });
        for (const path of ['/', '/inspector.js']) {
          const { status: got } = await send(base + path);
          expect([address, path, got]).toEqual([address, path, status]);
        }
      }
    } finally {
      process.env.NODE_ENV = before;
    }
  });

  test.each<[string, object]>([
    ['client', { client: {} }],
    ['actions', { actions: 'yes' }],
    ['allowedHosts', { allowedHosts: ['a.example:80'] }],
    ['basePath', { basePath: 'locks' }],
    ['autorize', { autorize: () => true }],
  ])('refuses a wrong %s', async (what, wrong) => {
    const client = await openClient();
    expect(() => createInspector({ client, authorize: () => true, ...wrong })).toThrow(what);
  });
});

describe('a visitor', () => {
  test.each(PATHS)('gets nothing of %s, whatever authorize answers besides true and a name', async (path) => {
    for (const answer of [false, undefined, null, 0, 1, '', {}]) {
      const { base } = await start({ authorize: async () => answer as boolean, actions: true });
      const reply = await send(base + path, {}, path === '/unlock' ? 'POST' : 'GET');
      expect([answer, reply.status, codeOf(reply)]).toEqual([answer, 403, 'forbidden']);
      expect(reply.headers['content-type']).toContain('application/json');
    }
  });

  test('gets status 500 without the message of an authorize that fails; next() gets the error', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const failing = { authorize: () => Promise.reject(new Error('secret of the database')) };
    const { base, client } = await start(failing);
    const reply = await send(base);
    expect([reply.status, codeOf(reply), reply.text.includes('secret')]).toEqual([500, 'internal', false]);
    expect(warned.mock.calls).toEqual([
      [expect.stringContaining('secret of the database'), { code: 'HOLDFAST_INSPECTOR' }],
    ]);
    warned.mockRestore();
    const inspector = createInspector({ client, ...failing });
    const through = await serve((request, response) => {
      inspector(request, response, (error) => response.writeHead(418).end((error as Error).message));
    });
    expect(await send(through)).toMatchObject({ status: 418, text: 'secret of the database' });
  });

  test('gets status 500 from a next() that throws, and the process goes on', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const client = await openClient();
    const inspector = createInspector({ client, authorize: () => Promise.reject(new Error('down')) });
    const throwing = await serve((request, response) => {
      inspector(request, response, () => {
        throw new Error('no handler of errors');
      });
    });
    expect(await send(throwing)).toMatchObject({ status: 500 });
    expect(warned.mock.calls[0]).toEqual([
      expect.stringContaining('no handler of errors'),
      { code: 'HOLDFAST_INSPECTOR' },
    ]);
    await new Promise((resume) => setImmediate(resume));
    process.off('unhandledRejection', note);
    warned.mockRestore();
    expect(unhandled).toEqual([]);
  });
});

test('every response has strict headers, and the files of the page their types', async () => {
  const { base } = await start();
  for (const path of [...PATHS.filter((each) => each !== '/events'), '/']) {
    const { headers } = await send(base + path, ADMIN);
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store, no-transform',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
  }
  expect((await send(`${base}/`, ADMIN)).headers['content-type']).toBe('text/html; charset=utf-8');
  expect((await send(`${base}/inspector.css`, ADMIN)).headers['content-type']).toBe('text/css; charset=utf-8');
  expect((await send(`${base}/inspector.js`, ADMIN)).headers['content-type']).toBe('text/javascript; charset=utf-8');
  expect(await send(`${base}/`, ADMIN, 'HEAD')).toMatchObject({ status: 200, text: '' });
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    expect(await send(`${base}/`, ADMIN, method)).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  }
  expect(await send(`${base}/unlock`, ADMIN)).toMatchObject({ status: 405, headers: { allow: 'POST' } });
  expect(codeOf(await send(`${base}/nothing`, ADMIN))).toBe('not found');
});

describe('other hosts and sites', () => {
  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io:80', '[::2]:80'])(
    'a request under the host name %j is refused before authorize, on every path',
    async (host) => {
      let asked = 0;
      const { base } = await start({ authorize: () => (asked += 1) > 0 });
      for (const path of PATHS) {
        const reply = await send(base + path, { ...ADMIN, host });
        expect([path, reply.status, codeOf(reply)]).toEqual([path, 403, 'wrong host']);
      }
      expect(asked).toBe(0);
    },
  );

  test('the hosts of the machine, and those of allowedHosts in any case and with any port, are served', async () => {
    const { base } = await start();
    for (const host of ['localhost:3000', 'LOCALHOST', '[::1]:80', '127.0.0.1']) {
      expect([host, (await send(base, { ...ADMIN, host })).status]).toEqual([host, 200]);
    }
    const { base: named } = await start({ allowedHosts: ['Locks.Example.com'] });
    expect((await send(named, { ...ADMIN, host: 'locks.example.com:8443' })).status).toBe(200);
    expect((await send(named, ADMIN)).status).toBe(403);
  });

  test('another site may link to the page, and may not load, read or post anything', async () => {
    const { base } = await start({ actions: true });
    const { host } = new URL(base);
    const from = async (path: string, headers: Record<string, string>): Promise<number> =>
      (await send(base + path, { ...ADMIN, ...headers }, path === '/unlock' ? 'POST' : 'GET')).status;
    for (const site of ['cross-site', 'same-site']) {
      for (const path of ['/', '/inspector.js', '/inspector.css', '/events', '/unlock']) {
        expect([path, await from(path, { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' })]).toEqual([path, 403]);
      }
      expect(await from('/', { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' })).toBe(200);
      expect(await from('/unlock', { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' })).toBe(403);
    }
    for (const origin of ['https://evil.example', 'null', `http://${host}.evil.example`]) {
      expect([origin, await from('/unlock', { origin }), await from('/events', { origin })]).toEqual([
        origin,
        403,
        403,
      ]);
    }
    expect(await from('/inspector.js', { 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await from('/', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' })).toBe(200);
  });
});

describe('unlock', () => {
  async function opened(given: Partial<InspectorOptions> = { actions: true }) {
    const { base, client } = await start({ actions: true, ...given });
    const page = await OpenPage.open(base, '', ADMIN);
    await page.shows((shown) => shown.last('hello') !== undefined, 'the first event');
    const csrf = page.last('hello')!.csrf;
    page.close();
    const post = (body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
      send(
        `${base}/unlock`,
        { ...ADMIN, 'content-type': 'application/json', 'holdfast-csrf': csrf ?? '', ...headers },
        'POST',
        typeof body === 'string' ? body : JSON.stringify(body),
      );
    return { client, post };
  }

  test('frees the lock of the shown owner, once, and tells who did it', async () => {
    const { client, post } = await opened();
    const name = freshName('<b>"\u2028');
    const hold = await holdElsewhere((await openClient()).getLock(name));
    const audit: unknown[] = [];
    client.events.on('forceUnlocked', (event) => audit.push(event));
    const body = { name, owner: hold.owner, confirm: name };
    expect(await post(body)).toMatchObject({ status: 200, text: '{"freed":true}' });
    expect((await client.inspect(name)).kind).toBe('free');
    expect(await post(body)).toMatchObject({ status: 200, text: '{"freed":false}' });
    const told = { lockName: name, owner: hold.owner, by: 'alice', address: expect.stringContaining('127.0.0.1') };
    expect(audit).toMatchObject([
      { ...told, result: 'freed' },
      { ...told, result: 'not the owner' },
    ]);
    await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  });

  test('without the token, the typed name, a JSON body or actions nothing is freed', async () => {
    const { client, post } = await opened();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const { lockName: name, owner } = hold;
    const body = { name, owner, confirm: name };
    const refused = async (reply: Promise<Reply>): Promise<unknown[]> => [(await reply).status, codeOf(await reply)];
    expect(await refused(post(body, { 'holdfast-csrf': '' }))).toEqual([403, 'csrf']);
    expect(await refused(post(body, { 'holdfast-csrf': 'x'.repeat(43) }))).toEqual([403, 'csrf']);
    expect(await refused(post({ ...body, confirm: `${name} ` }))).toEqual([400, 'not confirmed']);
    expect(await refused(post({ name, owner }))).toEqual([400, 'invalid']);
    expect(await refused(post({ ...body, owner: 'nobody' }))).toEqual([400, 'invalid']);
    expect(await refused(post({ ...body, owner: [owner] }))).toEqual([400, 'invalid']);
    expect(await refused(post('{'))).toEqual([400, 'not JSON']);
    expect(await refused(post('null'))).toEqual([400, 'invalid']);
    expect(await refused(post(body, { 'content-type': 'text/plain' }))).toEqual([415, 'not JSON']);
    expect(await refused(post({ ...body, more: 'x'.repeat(9_000) }))).toEqual([413, 'too large']);
    expect((await client.inspect(name)).owners).toMatchObject([{ owner }]);
    const off = await opened({ actions: false });
    expect(await refused(off.post(body))).toEqual([403, 'actions off']);
    await hold.release();
  });

  /** A lock of another client, and what frees it through a client with these settings. */
  async function held(settings: ClientSettings) {
    const hold = await holdElsewhere((await openClient()).getLock(freshName()));
    const client = await openClient(settings);
    const { post } = await opened({ client });
    const { lockName: name, owner } = hold;
    return { hold, client, post: () => post({ name, owner, confirm: name }) };
  }

  test('a Redis that refuses is status 502, and the reply names the missing permission', async () => {
    const user = limitedUser(freshName('').split(':')[0]!, ['getLock', 'forceUnlock']);
    await user.allow('hdel');
    const { hold, post } = await held({ url: Object.assign(new URL(testRedisUrl()), user.credentials).href });
    const reply = await post();
    expect([reply.status, codeOf(reply)]).toEqual([502, 'refused']);
    expect(reply.text).toContain('+hdel');
    await hold.release();
  });

  test('a Redis that cannot be reached is status 503, and nothing was freed', async () => {
    const { proxy, url } = await openProxy();
    const { hold, post } = await held({ url, commandTimeout: 300 });
    proxy.refuse('reset');
    proxy.cut();
    const reply = await post();
    expect([reply.status, codeOf(reply)]).toEqual([503, 'unavailable']);
    await hold.release();
  });

  test('a reply that does not come is status 503 with an unknown outcome, which the message explains', async () => {
    const { proxy, url } = await openProxy();
    // On a busy machine, a request with a short deadline would come too late, and free nothing.
    const { hold, post } = await held({ url, commandTimeout: 1_500 });
    proxy.stall({ direction: 'to-client' });
    const reply = await post();
    expect([reply.status, codeOf(reply)]).toEqual([503, 'unknown outcome']);
    expect(reply.text).toContain('The lock may be free or not');
    proxy.lift();
    // It was freed, although the page could not know.
    await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  });

  test('a closed client is status 503', async () => {
    const { hold, client, post } = await held({});
    await client.close();
    const reply = await post();
    expect([reply.status, codeOf(reply)]).toEqual([503, 'closed']);
    await hold.release();
  });
});
