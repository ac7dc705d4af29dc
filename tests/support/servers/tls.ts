import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port.js';
import { startServer, type RedisServer, type ServerOptions } from './servers.js';

const run = promisify(execFile);

export interface TlsServer {
  readonly server: RedisServer;
  readonly port: number;
  /** The certificate authority that its clients trust. */
  readonly ca: string;
  stop(): Promise<void>;
}

/** A certificate for 127.0.0.1, from an authority that is made for this run alone. */
export interface TlsFiles {
  /** The certificate authority that clients trust. */
  readonly ca: string;
  /** Lines of redis.conf, but for the port. */
  readonly config: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

export async function makeTlsFiles(): Promise<TlsFiles> {
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-tls-'));
  const file = (name: string): string => join(directory, name);
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', args);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  await openssl(
    ...['req', '-x509', ...key, '-subj', '/CN=test authority', '-keyout', file('ca.key'), '-out', file('ca.crt')],
  );
  await openssl(
    ...['req', '-x509', ...key, '-subj', '/CN=server', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ...['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-keyout', file('server.key'), '-out', file('server.crt')],
  );
  return {
    ca: await readFile(file('ca.crt'), 'utf8'),
    config: {
      'tls-cert-file': file('server.crt'),
      'tls-key-file': file('server.key'),
      'tls-ca-cert-file': file('ca.crt'),
      'tls-auth-clients': 'no',
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/** A server that uses TLS on a separate port. */
export async function startTlsServer(options: ServerOptions = {}): Promise<TlsServer> {
  const { ca, config, remove } = await makeTlsFiles();
  const port = await freePort();
  const server = await startServer({ ...options, config: { 'tls-port': String(port), ...config, ...options.config } });
  const stop = async (): Promise<void> => {
    await server.stop();
    await remove();
  };
  return { server, port, ca, stop };
}
