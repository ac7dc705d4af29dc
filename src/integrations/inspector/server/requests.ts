import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Refusal } from './refusal.js';

/** A request, as Express and similar servers extend it. */
export interface MountedRequest extends IncomingMessage {
  /** The path with that of the mount, which `url` may lack. */
  readonly originalUrl?: string;
  /** What a parser of the server has made of the body. */
  readonly body?: unknown;
}

/** Where a request goes. */
export interface Target {
  /** The path below the base path: `/`, `/events`. Empty: the base path without its slash. */
  readonly path: string;
  /** The last part of the base path. */
  readonly folder: string;
  readonly query: URLSearchParams;
}

/** Reads where a request goes. `undefined`: not below the base path. */
export function targetOf({ url = '/', originalUrl = url }: MountedRequest, basePath?: string): Target | undefined {
  const [inner, whole] = [pathOf(url), pathOf(originalUrl)];
  const base = basePath ?? mountOf(inner, whole);
  if (whole !== base && !whole.startsWith(`${base}/`)) return undefined;
  const query = new URLSearchParams(originalUrl.slice(whole.length));
  return { path: whole.slice(base.length), folder: base.slice(base.lastIndexOf('/') + 1), query };
}

const pathOf = (url: string): string => url.split(/[?#]/, 1)[0] as string;

/** What the server has removed from the beginning of the path. For `/locks`, Express leaves `/`. */
function mountOf(inner: string, whole: string): string {
  if (whole.endsWith(inner)) return whole.slice(0, -inner.length).replace(/\/$/, '');
  return inner === '/' ? whole : '';
}

/**
 * Refuses a request under a name that is not the server's. After DNS rebinding, the browser takes another site and this
 * server for the same origin.
 *
 * @throws {Refusal}
 */
export function checkHost({ headers }: IncomingMessage, allowed: ReadonlySet<string>): void {
  const host = (hostIn(headers) ?? '').replace(/:\d*$/, '').toLowerCase();
  if (allowed.has(host)) return;
  const message = `the inspector does not answer under the host name ${JSON.stringify(host)}: add it to allowedHosts`;
  throw new Refusal(403, 'wrong host', message);
}

/**
 * Refuses a request that a page of another site causes. A link to the page may be on any site: it shows no data.
 *
 * @throws {Refusal}
 */
export function checkSite({ headers }: IncomingMessage, isPage: boolean): void {
  const site = headers['sec-fetch-site'];
  const { origin } = headers;
  const isLink = isPage && headers['sec-fetch-mode'] === 'navigate';
  const isOwnOrigin = origin === undefined || (origin !== 'null' && hostOf(origin) === hostIn(headers));
  const isOwn = site === undefined ? isOwnOrigin : site === 'same-origin' || site === 'none';
  if (!isOwn && !isLink) throw new Refusal(403, 'cross-site', 'the request comes from another site');
}

/** The host and the port that the client has named. HTTP/2 has them in `:authority`. */
function hostIn({ host, ':authority': authority }: IncomingHttpHeaders): string | undefined {
  return host ?? (typeof authority === 'string' ? authority : undefined);
}

const hostOf = (origin: string): string | undefined => (URL.canParse(origin) ? new URL(origin).host : undefined);
