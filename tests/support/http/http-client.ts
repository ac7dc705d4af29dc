import { request as openRequest, type Agent, type ClientRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request that a client has sent, and that the client may end by closing its connection. */
export interface Sent {
  /** The whole response. It rejects with `ECONNRESET` if the connection ends before. */
  readonly answer: Promise<Answer>;
  /** Resolves with the first part of the body. */
  readonly firstPart: Promise<string>;
  disconnect(): void;
}

export interface SendOptions {
  readonly method?: string;
  readonly agent?: Agent;
  readonly json?: unknown;
}

/** Sends a request with the client of `node:http`, on a connection of its own unless an agent is given. */
export function send(url: string, { method = 'POST', agent, json }: SendOptions = {}): Sent {
  const body = json === undefined ? undefined : JSON.stringify(json);
  const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
  const sent = openRequest(url, { method, agent: agent ?? false, headers });
  const [answer, firstPart] = read(sent);
  // A test that disconnects need not look at either.
  answer.catch(() => undefined);
  firstPart.catch(() => undefined);
  sent.end(body);
  return { answer, firstPart, disconnect: () => sent.destroy() };
}

/** Sends several requests on one connection in one packet. `text`: all that was answered so far. */
export function sendTogether(url: string, ...paths: string[]): { text(): string; disconnect(): void } {
  const { hostname, port } = new URL(url);
  let text = '';
  const socket = connect(Number(port), hostname, () => {
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`).join(''));
  });
  socket.setEncoding('utf8').on('data', (part: string) => (text += part));
  socket.on('error', () => undefined);
  return { text: () => text, disconnect: () => socket.destroy() };
}

function read(sent: ClientRequest): [Promise<Answer>, Promise<string>] {
  const { promise: firstPart, ...first } = withResolvers<string>();
  const { promise: answer, ...whole } = withResolvers<Answer>();
  const failed = (error: Error): void => {
    first.reject(error);
    whole.reject(error);
  };
  sent.on('error', failed);
  sent.on('response', (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (part: string) => {
      text += part;
      first.resolve(part);
    });
    response.on('error', failed);
    response.on('end', () => whole.resolve({ status: response.statusCode!, headers: response.headers, text }));
  });
  return [answer, firstPart];
}

function withResolvers<T>(): { promise: Promise<T>; resolve(value: T): void; reject(error: Error): void } {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
