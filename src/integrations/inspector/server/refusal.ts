import type { ServerResponse } from 'node:http';
import type { ErrorReply } from '../contract/messages.js';

type Code = ErrorReply['error']['code'];

/** Why a request is refused. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: Code,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** What every response of the inspector has. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store, no-transform',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

export function setHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
}

export function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

export const sendJson = (response: ServerResponse, status: number, value: object): void =>
  send(response, status, 'application/json; charset=utf-8', JSON.stringify(value));

export function sendRefusal(response: ServerResponse, { status, code, message, headers }: Refusal): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  sendJson(response, status, { error: { code, message } } satisfies ErrorReply);
}
