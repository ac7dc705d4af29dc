import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInspector } from '../integrations/inspector/index.js';
import { isSameSecret } from '../integrations/shared/same-secret.js';
import { numberOption, UsageError } from './arguments.js';
import { EXIT, type Session } from './session.js';
import { userText } from './words.js';

const HOST = '127.0.0.1';

/** `holdfast ui`. Serves the page on this machine until the user ends it. */
export async function ui({ args, client, terminal, signal }: Session): Promise<number> {
  const port = numberOption(args, 'port', 0, 0);
  if (!Number.isInteger(port) || port > 65_535) throw new UsageError('--port must be a port: 0 to 65535, 0 for any');
  await client.ready();
  const server = createServer();
  await listen(server, port);
  const { port: bound } = server.address() as AddressInfo;
  const door = new Door(bound);
  const inspector = createInspector({
    client,
    actions: args.flags.has('actions'),
    allowedHosts: [HOST, 'localhost'],
    authorize: (request) => door.admits(request) && userText(),
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!door.opens(request, response)) inspector(request, response);
  });
  const url = `http://${HOST}:${bound}/?token=${door.token}`;
  if (terminal.json) await terminal.object({ url });
  else await terminal.lines(url, 'The link works once, in one tab of a browser on this machine. Ctrl-C ends the page.');
  if (args.flags.has('open')) await openInBrowser(url, signal);
  if (!signal.aborted) await once(signal, 'abort');
  inspector.close();
  server.close();
  server.closeAllConnections();
  return EXIT.interrupted;
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, HOST);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new UsageError(`port ${port} cannot be used (${(error as Error).message}): choose another --port`);
  }
}

/**
 * Opens a link in the browser of the user. The link goes through a file that no other user can read: every user of the
 * machine can read the arguments of a process, and the link has a token.
 */
async function openInBrowser(url: string, signal: AbortSignal): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
  const file = join(folder, 'open.html');
  await writeFile(file, `<!doctype html><title>Locks</title><meta http-equiv="refresh" content="0; url=${url}">\n`, {
    mode: 0o600,
  });
  const [command, args] = commandFor(file);
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  // The link is on the terminal, too.
  child.on('error', () => undefined);
  child.unref();
  const remove = (): void => void rm(folder, { recursive: true, force: true }).catch(() => undefined);
  if (signal.aborted) remove();
  else signal.addEventListener('abort', remove, { once: true });
}

function commandFor(file: string): [command: string, args: string[]] {
  if (process.platform === 'darwin') return ['open', [file]];
  if (process.platform === 'win32') return ['cmd', ['/c', 'start', '', file]];
  return ['xdg-open', [file]];
}

/** What anybody may read: these files have no data. */
const FILES: readonly string[] = ['/', '/inspector.css', '/inspector.js'];

/**
 * Lets in the browser tab that uses the link first. Other users of the machine can reach the port, too. The tab keeps a
 * secret in its storage, which belongs to this port alone: a cookie would go to every other server on this machine.
 */
class Door {
  readonly token = randomBytes(24).toString('base64url');
  readonly #session = randomBytes(24).toString('base64url');
  #isUsed = false;

  constructor(private readonly port: number) {}

  admits({ headers, url = '/' }: IncomingMessage): boolean {
    const path = url.split('?', 1)[0] as string;
    if (FILES.includes(path)) return true;
    // The events have the secret in the query, because browsers send no header of the page with that request.
    const given = headers['holdfast-session'] ?? new URLSearchParams(url.slice(path.length)).get('session');
    return isSameSecret(given, this.#session);
  }

  /** Answers a request that brings a token. Returns `false` for every other request. */
  opens({ method, url = '/', headers }: IncomingMessage, response: ServerResponse): boolean {
    // Not by `new URL`, which throws for paths such as `//`: anybody on this machine may send one.
    const token = url.startsWith('/?') ? new URLSearchParams(url.slice(2)).get('token') : null;
    if (token === null) return false;
    const isOwnHost = [`${HOST}:${this.port}`, `localhost:${this.port}`].includes(headers.host ?? '');
    const nonce = randomBytes(16).toString('base64url');
    response.setHeader('cache-control', 'no-store');
    response.setHeader(
      'content-security-policy',
      `default-src 'none'; script-src 'nonce-${nonce}'; frame-ancestors 'none'`,
    );
    response.setHeader('referrer-policy', 'no-referrer');
    if (method !== 'GET' || !isOwnHost || this.#isUsed || !isSameSecret(token, this.token)) {
      response.writeHead(403, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(
        'This link was used before, or is not the link of this server. Start holdfast ui again for a new one.\n',
      );
      return true;
    }
    this.#isUsed = true;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(
      `<!doctype html><title>Locks</title><script nonce="${nonce}">` +
        `sessionStorage.setItem('holdfast-session', '${this.#session}'); location.replace('./');</script>\n`,
    );
    return true;
  }
}
