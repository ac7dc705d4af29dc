import { createHash, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { errorOf } from '../../shared/error-of.js';
import { endOf } from '../../shared/response-end.js';
import { EventStream } from '../live/event-stream.js';
import { Hub, MAX_PAGES } from '../live/hub.js';
import { warn } from '../live/warn.js';
import { readView } from '../live/view.js';
import type { Hello } from '../contract/messages.js';
import { resolveOptions, type Authorization, type InspectorOptions, type ResolvedInspectorOptions } from './options.js';
import { PAGE_FILES } from './page-files.js';
import { Refusal, send, sendJson, sendRefusal, setHeaders } from './refusal.js';
import { checkHost, checkSite, targetOf, type MountedRequest, type Target } from './requests.js';
import { unlock } from './unlock.js';

/** The page as a request handler. See {@link createInspector}. */
export interface Inspector {
  /**
   * Answers a request. `next` receives an error of `authorize`; without it, the response has the status 500.
   */
  (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void;
  /** Ends the event streams of all open pages, so that the server can close. A page may connect again. */
  close(): void;
}

/** Identifies the files of the page. */
const VERSION = createHash('sha256')
  .update([...PAGE_FILES.values()].map(({ text }) => text).join('\0'))
  .digest('hex')
  .slice(0, 12);

/**
 * Creates the page that shows live what is locked, by which process, and which calls wait: a handler of requests to mount
 * in node:http, Express, Fastify or Nest, behind the login of the application. While no page is open, it sends no command.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid, or `authorize` is missing while
 *   `NODE_ENV` is not `development`.
 * @example
 * app.use('/locks', createInspector({ client, authorize: (request) => isAdmin(request) }));
 */
export function createInspector(options: InspectorOptions): Inspector {
  const server = new InspectorServer(resolveOptions(options));
  const handle = (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void) =>
    void server.handle(request, response, next);
  return Object.assign(handle, { close: () => server.close() });
}

class InspectorServer {
  readonly #hub: Hub;
  readonly #csrf = randomBytes(32).toString('base64url');

  constructor(private readonly options: ResolvedInspectorOptions) {
    this.#hub = new Hub(options.client);
  }

  close(): void {
    this.#hub.close('server closed');
  }

  async handle(
    request: MountedRequest,
    response: ServerResponse,
    next: ((error?: unknown) => void) | undefined,
  ): Promise<void> {
    try {
      await this.#answer(request, response);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      if (error instanceof Refusal) return sendRefusal(response, error);
      let failure: unknown = error;
      if (next !== undefined) {
        try {
          return next(errorOf(error));
        } catch (cause) {
          // An error that leaves this function would end the process.
          failure = cause;
        }
      }
      warn('the inspector failed to answer a request', failure);
      if (response.headersSent || response.destroyed) return void response.destroy();
      sendRefusal(response, new Refusal(500, 'internal', 'the server has failed; it has written a warning'));
    }
  }

  async #answer(request: MountedRequest, response: ServerResponse): Promise<void> {
    setHeaders(response);
    const { actions, allowedHosts, basePath, client } = this.options;
    checkHost(request, allowedHosts);
    const target = targetOf(request, basePath);
    const isPage = target?.path === '/' || target?.path === '';
    checkSite(request, isPage);
    const user = await this.#userOf(request);
    if (target === undefined) throw new Refusal(404, 'not found', 'there is nothing at this path');
    if (target.path === '/unlock') {
      checkMethod(request, ['POST']);
      if (!actions) throw new Refusal(403, 'actions off', 'the inspector was created without actions: true');
      return sendJson(response, 200, await unlock(client, this.#hub, request, this.#csrf, user));
    }
    checkMethod(request, ['GET', 'HEAD']);
    if (target.path === '') return redirect(response, target);
    if (target.path === '/events') return this.#openStream(request, response, target, user);
    const file = PAGE_FILES.get(target.path);
    if (file === undefined) throw new Refusal(404, 'not found', 'there is nothing at this path');
    send(response, 200, file.type, request.method === 'HEAD' ? '' : file.text);
  }

  /**
   * The name of the user; `null` if `authorize` names none.
   *
   * @throws {Refusal} The user may not see the page.
   */
  async #userOf(request: MountedRequest): Promise<string | null> {
    const found: Authorization = await this.options.authorize(request);
    // A function without types may return anything.
    if (found === true) return null;
    if (typeof found === 'string' && found !== '') return found;
    throw new Refusal(403, 'forbidden', 'authorize() does not admit this request');
  }

  #openStream(request: MountedRequest, response: ServerResponse, { query }: Target, user: string | null): void {
    const view = readView(query);
    if (view === undefined) throw new Refusal(400, 'invalid', 'the query is no view');
    const overview = this.options.client.overview(() => Promise.resolve());
    if (overview.isClosed) throw new Refusal(503, 'closed', 'the client of the inspector is closed');
    if (this.#hub.isFull) throw new Refusal(503, 'too many pages', `${MAX_PAGES} pages are open already: close one`);
    const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };
    response.writeHead(200, headers);
    if (request.method === 'HEAD') return void response.end();
    const end = endOf(request, response);
    if (end.signal.aborted) return;
    const { actions, client } = this.options;
    const hello: Hello = {
      now: Date.now(),
      version: VERSION,
      client: { ...this.#hub.process, id: client.id, name: overview.clientName },
      keyPrefix: overview.keyPrefix,
      actions,
      csrf: actions ? this.#csrf : null,
      user,
      view,
    };
    const isAllowed = async (): Promise<boolean> => {
      const found = await this.options.authorize(request);
      return found === true || (typeof found === 'string' && found !== '');
    };
    const closed = this.#hub.open(new EventStream(response), view, isAllowed, hello);
    void end.reached().then(closed);
  }
}

function checkMethod({ method = '' }: MountedRequest, allowed: readonly string[]): void {
  if (allowed.includes(method)) return;
  const allow = allowed.join(', ');
  throw new Refusal(405, 'method not allowed', `the method must be one of ${allow}`, { allow });
}

/** A relative address, because a proxy in front may have removed a part of the path. */
function redirect(response: ServerResponse, { folder }: Target): void {
  response.writeHead(308, { location: `./${folder}/`, 'content-length': 0 });
  response.end();
}
