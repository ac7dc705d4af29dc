import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { startServer, type RedisServer, type ServerOptions } from './servers.js';
import { until } from '../time/until.js';

const servers: RedisServer[] = [];
const clients: Redis[] = [];

async function start(options?: ServerOptions): Promise<RedisServer> {
  const server = await startServer(options);
  servers.push(server);
  return server;
}

function connect(server: RedisServer, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
  const client = new Redis({ retryStrategy: () => 20, disconnectTimeout: 50, ...options, ...server.address });
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('a plain server', () => {
  let server: RedisServer;
  let client: Redis;

  beforeEach(async () => {
    server = await start({ unixSocket: true });
    client = connect(server);
  });

  test('stop ends the process, also a stopped one, and removes its files', async () => {
    const { pid, socketPath } = server;
    await server.pause();
    await server.stop();
    expect(alive(pid)).toBe(false);
    expect(existsSync(dirname(socketPath))).toBe(false);
    expect(server.running).toBe(false);
  });

  test('restart comes back empty at the same address, as another process', async () => {
    await client.set('key', 'value');
    const { pid, port } = server;
    await server.restart();
    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
    expect(alive(pid)).toBe(false);
    expect(await client.get('key')).toBeNull();
  });

  test('a paused server replies when it is resumed and not before', async () => {
    await client.ping();
    await server.pause();
    let answered = false;
    const incremented = client.incr('counter').then((count) => {
      answered = true;
      return count;
    });
    // It accepts: the kernel does.
    const other = connect(server, { lazyConnect: true, enableReadyCheck: false, disableClientInfo: true });
    const connected = new Promise<void>((resolve) => other.once('connect', resolve));
    void other.connect().catch(() => undefined);
    await connected;
    expect(answered).toBe(false);
    server.resume();
    expect(await incremented).toBe(1);
  });

  test('kill9 ends it abruptly, and its address refuses connections', async () => {
    await server.kill9();
    expect(server.running).toBe(false);
    const other = connect(server, { lazyConnect: true, retryStrategy: () => null });
    await expect(other.connect()).rejects.toThrow();
  });

  test('shutdown ends it and start brings it back empty at the same address', async () => {
    const { port } = server;
    await client.set('key', 'value');
    await server.shutdown();
    expect(server.running).toBe(false);
    await server.start();
    expect(server.port).toBe(port);
    expect(await client.get('key')).toBeNull();
  });

  test('clientPause WRITE holds writes until unpaused and lets reads through', async () => {
    await server.clientPause(60_000, 'WRITE');
    const reader = connect(server);
    let written = false;
    const write = client.set('key', 'value').then(() => (written = true));
    expect(await reader.get('key')).toBeNull();
    expect(written).toBe(false);
    await server.clientUnpause();
    await write;
    expect(await reader.get('key')).toBe('value');
  });

  test('killPubsub disconnects subscribers alone', async () => {
    await client.ping();
    const subscriber = connect(server, { retryStrategy: () => null });
    await subscriber.subscribe('channel');
    expect(await server.channels()).toEqual(['channel']);
    const ended = new Promise<void>((resolve) => subscriber.once('end', resolve));
    expect(await server.killPubsub()).toBe(1);
    await ended;
    expect(client.status).toBe('ready');
    await until(async () => (await server.channels()).length === 0, 'the server has forgotten the subscriber');
  });

  test('scriptFlush makes a loaded script unknown', async () => {
    const sha = String(await client.script('LOAD', 'return 7'));
    expect(await client.evalsha(sha, 0)).toBe(7);
    await server.scriptFlush();
    await expect(client.evalsha(sha, 0)).rejects.toThrow('NOSCRIPT');
  });

  test('setMaxmemory 1 refuses writes with OOM until it is lifted', async () => {
    await server.setMaxmemory(1);
    await expect(client.set('key', 'value')).rejects.toThrow('OOM');
    await expect(client.eval("return redis.call('SET', KEYS[1], 1)", 1, 'key')).rejects.toThrow('OOM');
    await server.setMaxmemory(0);
    expect(await client.set('key', 'value')).toBe('OK');
  });

  test('replicaOf turns a master with clients into a replica that answers READONLY, and back', async () => {
    const master = await start();
    await connect(master).set('key', 'value');
    await server.replicaOf(master.address);
    await expect(client.set('key', 'other')).rejects.toThrow('READONLY');
    await until(async () => (await client.get('key')) === 'value', 'replicated');
    await server.replicaOf(undefined);
    expect(await client.set('key', 'other')).toBe('OK');
  });

  test('commandStats counts calls by command since the reset', async () => {
    await client.set('key', 1);
    await server.resetCommandStats();
    await client.incr('key');
    await client.eval("return redis.call('INCR', KEYS[1])", 1, 'key');
    const stats = await server.commandStats();
    expect(stats.get('incr')).toBe(2);
    expect(stats.get('eval')).toBe(1);
    expect(stats.get('set')).toBeUndefined();
  });

  test('monitor lists every command in order, also those of scripts', async () => {
    const monitor = await server.monitor();
    await client.set('key', 'a "quoted" \\ välue\n');
    await client.eval("return redis.call('INCR', KEYS[1])", 1, 'counter');
    const lines = await monitor.settle();
    const told = lines.filter(({ command }) => ['SET', 'EVAL', 'INCR'].includes(command));
    expect(told.map(({ command }) => command)).toEqual(['SET', 'EVAL', 'INCR']);
    expect(told[0]?.args).toEqual(['key', 'a "quoted" \\ välue\n']);
    expect(told[2]?.source).toBe('lua');
    expect(monitor.count('incr')).toBe(1);
  });

  test('it listens on its unix socket too', async () => {
    await client.set('key', 'value');
    const local = connect(server, { path: server.socketPath });
    expect(await local.get('key')).toBe('value');
    expect(await local.client('INFO')).toContain(`addr=${server.socketPath}`);
  });
});

test('a password and ACL users are required, and the bench still has access', async () => {
  const server = await start({ requirepass: 'secret words', users: ['app on >key ~app:* +@all'], aclFile: false });
  expect(await connect(server, { password: 'secret words' }).ping()).toBe('PONG');
  const app = connect(server, { username: 'app', password: 'key' });
  expect(await app.set('app:1', 1)).toBe('OK');
  await expect(app.set('other', 1)).rejects.toThrow('NOPERM');
  const stranger = connect(server, { password: 'wrong', retryStrategy: () => null });
  const [error] = await new Promise<[Error]>((resolve) => stranger.once('error', (first: Error) => resolve([first])));
  expect(error.message).toContain('WRONGPASS');
  expect(await server.keys()).toEqual(['app:1']);
});

test('users of an ACL file survive ACL LOAD, with the default user shut out', async () => {
  const server = await start({ users: ['default off', 'app on >key ~* +@all'], aclFile: true });
  await server.command('ACL', 'LOAD');
  const app = connect(server, { username: 'app', password: 'key' });
  expect(await app.ping()).toBe('PONG');
});

test('renamed commands are unknown to clients and available to the bench', async () => {
  const server = await start({ renameCommands: { CONFIG: 'bench-config', WAIT: '' } });
  const client = connect(server);
  await expect(client.config('GET', 'maxmemory')).rejects.toThrow('unknown command');
  await expect(client.wait(0, 0)).rejects.toThrow('unknown command');
  await server.setMaxmemory(1);
  await expect(client.set('key', 1)).rejects.toThrow('OOM');
  expect(() => server.command('WAIT', 0, 0)).toThrow('removed');
});

test('a server started as a replica follows its master', async () => {
  const master = await start();
  const replica = await start({ replicaOf: master.address });
  await connect(master).set('key', 'value');
  const reader = connect(replica);
  await until(async () => (await reader.get('key')) === 'value', 'replicated');
});

test('a server that cannot start says why', async () => {
  await expect(startServer({ config: { 'no-such-directive': 'yes' } })).rejects.toThrow('no-such-directive');
});

test('a server does not outlive the process that started it, even if that is killed', async () => {
  const script = `
    import { startServer } from ${JSON.stringify(new URL('./servers.ts', import.meta.url).href)};
    const { pid, socketPath } = await startServer({ unixSocket: true });
    console.log(pid, socketPath);
    setInterval(() => undefined, 1_000);`;
  const options = ['--import', 'tsx', '--input-type=module', '--eval', script];
  const starter = spawn(process.execPath, options, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = (await once(starter.stdout, 'data')) as [Buffer];
  const [word = '', socketPath = ''] = said.toString().trim().split(' ');
  const pid = Number(word);
  expect(alive(pid)).toBe(true);
  starter.kill('SIGKILL');
  await until(() => !alive(pid), 'the server has ended');
  rmSync(dirname(socketPath), { recursive: true });
});
