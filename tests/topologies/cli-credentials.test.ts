import { expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Command, runCommand } from '../support/processes/command.js';
import { freePort } from '../support/servers/free-port.js';
import { MASTER_NAME, SentinelSetup } from '../support/servers/sentinel.js';
import { serverMajor } from '../support/servers/server-version.js';
import { startServer } from '../support/servers/servers.js';
import { makeTlsFiles } from '../support/servers/tls.js';

const NOTHING = { code: 0, out: 'nothing is locked\n', err: '' };
const QUICK = ['ls', '--timeout', '2000'];

test('the command takes its TLS files and server name from the environment', async () => {
  const { ca, config, remove } = await makeTlsFiles();
  const port = await freePort();
  const tls = { ...config, 'tls-port': String(port), 'tls-auth-clients': 'yes' };
  const server = await startServer({ config: tls });
  const [cert, key] = [config['tls-cert-file']!, config['tls-key-file']!];
  const caFile = join(dirname(cert), 'trusted.pem');
  await writeFile(caFile, ca);
  const env = {
    HOLDFAST_URL: `rediss://127.0.0.1:${port}`,
    HOLDFAST_TLS_CA: caFile,
    HOLDFAST_TLS_CERT: cert,
    HOLDFAST_TLS_KEY: key,
  };
  try {
    expect(await runCommand(QUICK, { env })).toEqual(NOTHING);
    // TLS without rediss://: the option, the variable, or the files alone.
    const plain = { ...env, HOLDFAST_URL: `redis://127.0.0.1:${port}` };
    expect(await runCommand([...QUICK, '--tls'], { env: plain })).toEqual(NOTHING);
    expect(await runCommand(QUICK, { env: { ...plain, HOLDFAST_TLS: '1' } })).toEqual(NOTHING);
    const unknownCa = await runCommand(QUICK, { env: { ...env, HOLDFAST_TLS_CA: undefined } });
    expect([unknownCa.code, unknownCa.err]).toEqual([3, expect.stringMatching(/certificate/)]);
    expect((await runCommand(QUICK, { env: { ...env, HOLDFAST_TLS_CERT: undefined } })).code).toBe(3);
    const otherName = await runCommand(QUICK, { env: { ...env, HOLDFAST_TLS_SERVERNAME: 'redis.example.com' } });
    expect(otherName.code).toBe(3);
    const missing = await runCommand(QUICK, { env: { ...env, HOLDFAST_TLS_CA: '/nowhere.pem' } });
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('HOLDFAST_TLS_CA')]);
  } finally {
    await server.stop();
    await remove();
  }
}, 60_000);

/** The arguments of every process that this user can see, as `ps` shows them. */
async function allArguments(): Promise<string[]> {
  const processes = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  return Promise.all(processes.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
}

test('a password is in the arguments of no process and in no message, with TLS', async () => {
  const secret = `sesame-${randomBytes(8).toString('hex')}`;
  const { ca, config, remove } = await makeTlsFiles();
  const port = await freePort();
  const server = await startServer({ requirepass: secret, config: { ...config, 'tls-port': String(port) } });
  const caFile = join(dirname(config['tls-cert-file']!), 'trusted.pem');
  await writeFile(caFile, ca);
  const url = (password = ''): string => `rediss://${password === '' ? '' : `:${password}@`}127.0.0.1:${port}`;
  const base = { HOLDFAST_URL: url(), HOLDFAST_TLS_CA: caFile };
  try {
    for (const env of [
      { ...base, HOLDFAST_PASSWORD: secret },
      { ...base, HOLDFAST_URL: url(secret) },
    ]) {
      const command = new Command(['watch', 'a-name-to-find'], { env });
      await command.says('kind      free');
      if (process.platform === 'linux') {
        const shown = await allArguments();
        expect(shown.filter((text) => text.includes('a-name-to-find'))).toHaveLength(1);
        expect(shown.filter((text) => text.includes(secret))).toEqual([]);
      }
      command.interrupt();
      expect([await command.ended, command.out.includes(secret), command.err]).toEqual([130, false, '']);
    }
    for (const [code, env] of [
      [3, { ...base, HOLDFAST_PASSWORD: `${secret}-wrong` }],
      [3, { ...base, HOLDFAST_USERNAME: 'nobody', HOLDFAST_PASSWORD: secret }],
      [3, { ...base, HOLDFAST_URL: url(`${secret}-wrong`) }],
      [3, { HOLDFAST_URL: `redis://:${secret}@127.0.0.1:1` }],
      [2, { HOLDFAST_URL: `redis://:${secret}@:x` }],
      [2, { HOLDFAST_URL: `http://:${secret}@127.0.0.1` }],
      [2, { HOLDFAST_URL: `redis://:${secret}@127.0.0.1/x` }],
    ] as const) {
      const { code: got, out, err } = await runCommand(QUICK, { env });
      expect([got, out, err.includes(secret), err === '']).toEqual([code, '', false, false]);
    }
  } finally {
    await server.stop();
    await remove();
  }
}, 90_000);

if (serverMajor() >= 7) {
  test('the command takes the password of Sentinel from the environment', async () => {
    const setup = await SentinelSetup.start({ replicas: 0, sentinels: 1 });
    const [sentinel] = setup.sentinels;
    await sentinel!.command('ACL', 'SETUSER', 'default', 'resetpass', '>secret');
    const env = { HOLDFAST_SENTINEL: `${MASTER_NAME}@${sentinel!.host}:${sentinel!.port}` };
    try {
      expect(await runCommand(QUICK, { env: { ...env, HOLDFAST_SENTINEL_PASSWORD: 'secret' } })).toEqual(NOTHING);
      const without = await runCommand(QUICK, { env });
      expect([without.code, without.err.includes('secret')]).toEqual([3, false]);
    } finally {
      await setup.stop();
    }
  }, 90_000);
}
