import { setMaxListeners } from 'node:events';

/** The part of a response that shows its end. Responses of `node:http` and `node:http2` have it. */
export interface ClosableResponse {
  once(event: 'finish' | 'close', listener: () => void): this;
  off(event: 'finish' | 'close', listener: () => void): this;
  end?(...args: never[]): unknown;
  destroy?(...args: never[]): unknown;
  readonly destroyed?: boolean;
  readonly writableEnded?: boolean;
  readonly writableFinished?: boolean;
  /** The socket of `node:http`: `null` while responses before this one use the connection. */
  readonly socket?: object | null;
  /** The stream of `node:http2`, which has no `destroyed` of its own. */
  readonly stream?: { readonly destroyed: boolean };
}

/** A socket, or a stream of `node:http2`. */
interface Connection {
  once(event: 'close', listener: () => void): unknown;
  readonly destroyed: boolean;
}

/** The end of a response, after its last byte or because the client disconnected. */
export interface ResponseEnd {
  /** Aborts when the response has ended. */
  readonly signal: AbortSignal;
  /** Resolves when the response has ended. */
  reached(): Promise<void>;
  /** Removes the listeners. */
  forget(): void;
}

/** The same signal. One handler may give it to many calls: Node.js would warn of a leak from the eleventh listener on. */
export function forManyListeners(signal: AbortSignal): AbortSignal {
  setMaxListeners(0, signal);
  return signal;
}

/** @param request - of the response. It has the socket from the start. */
export function endOf(request: object, response: ClosableResponse): ResponseEnd {
  const controller = new AbortController();
  const signal = forManyListeners(controller.signal);
  const ended = (): void => controller.abort();
  const connection: Partial<Connection> | undefined =
    response.stream ?? (request as { readonly socket?: object }).socket;
  if (connection?.destroyed === true || isOver(response)) ended();
  // A response that a test injects has no connection, and need not emit `close`.
  response.once('finish', ended).once('close', ended);
  let look: NodeJS.Timeout | undefined;
  let isForgotten = false;
  // A response without a socket emits nothing, neither when it is ended nor when the connection closes.
  if (isPipelined(response)) {
    const lookAtEnd = (): void => {
      clearTimeout(look);
      if (isOver(response)) ended();
      // A middleware may end the response later, as express-session does when it has stored its session.
      else if (isPipelined(response) && !signal.aborted && !isForgotten) look = setTimeout(lookAtEnd, LOOK_MS).unref();
    };
    callAfter(response, 'end', lookAtEnd);
    callAfter(response, 'destroy', lookAtEnd);
  }
  const stopWatching = isConnection(connection) ? onceClosed(connection, ended) : undefined;
  return {
    signal,
    reached: () =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      }),
    forget() {
      isForgotten = true;
      clearTimeout(look);
      response.off('finish', ended).off('close', ended);
      stopWatching?.();
    },
  };
}

/** Time between two looks whether a pipelined response is ended. */
const LOOK_MS = 10;

/** Calls `look` after each call of the method. */
function callAfter(response: ClosableResponse, name: 'end' | 'destroy', look: () => void): void {
  const method = response[name];
  if (method === undefined) return;
  const callAndLook = (...args: never[]): unknown => {
    const result = method.apply(response, args);
    look();
    return result;
  };
  response[name] = callAndLook;
}

/**
 * A response of `node:http` whose turn on the connection has not come. It is over for its handler once the handler has ended
 * it: its bytes wait for the responses before it, one of which may wait for what this request holds.
 */
const isPipelined = ({ stream, socket, writableFinished }: ClosableResponse): boolean =>
  stream === undefined && (socket ?? undefined) === undefined && writableFinished !== true;

const isOver = (response: ClosableResponse): boolean =>
  response.destroyed === true ||
  response.writableFinished === true ||
  (response.writableEnded === true && isPipelined(response));

const isConnection = (connection: Partial<Connection> | undefined): connection is Connection =>
  typeof connection?.once === 'function';

/** One listener for each connection, however many requests it has. */
const listeners = new WeakMap<Connection, Set<() => void>>();

/** Calls a listener when a connection closes. Returns a function that removes the listener. */
function onceClosed(connection: Connection, listener: () => void): () => void {
  let ofConnection = listeners.get(connection);
  if (ofConnection === undefined) {
    const added = new Set<() => void>();
    connection.once('close', () => {
      for (const closed of added) closed();
    });
    listeners.set(connection, added);
    ofConnection = added;
  }
  ofConnection.add(listener);
  return () => ofConnection.delete(listener);
}
