/* Gives each connection the credentials that are right when it is opened, and newer ones while it is open. */
import type { Redis } from 'ioredis';
import { BackOff } from '../../back-off.js';
import type { Clock, Timer } from '../../clock.js';
import type { Credentials, CredentialsFunction } from '../../options.js';
import { CREDENTIALS_MS, CREDENTIALS_PAUSES } from '../../timing.js';
import { isPasswordUnneeded, withoutArguments } from '../server-error.js';
import { detached } from './detached.js';

/** What AUTH sends. Without a password, the connection sends no AUTH. */
type Login = Pick<{ [K in keyof Credentials]?: Credentials[K] | undefined }, 'username' | 'password'>;

/** The credentials of one connection, from before it is opened until it closes. */
interface Lent {
  /** The newest ones. */
  readonly login: Login;
  /** Ends the watch for newer ones. */
  stop(): void;
}

/** Where the credentials of a client's connections come from, if something has to be asked for them. */
export interface CredentialsSource {
  /**
   * Resolves with the credentials for a connection that is about to be opened. `renew` gets newer ones while the connection
   * is open, and `failed` gets the reason why there are none.
   */
  lend(renew: (login: Login) => Promise<void>, failed: (cause: unknown) => void): Promise<Lent>;
}

/** Asks a function, and again when 80 % of the lifetime of its answer have passed. */
export function sourceOf(ask: CredentialsFunction, clock: Clock): CredentialsSource {
  return {
    async lend(renew, failed) {
      const pauses = new BackOff(CREDENTIALS_PAUSES);
      let timer: Timer | undefined;
      let over = false;
      const askIn = (ms: number): void => {
        if (!over) timer = clock.setTimer(Math.max(ms, CREDENTIALS_PAUSES.first), () => void askAgain());
      };
      const answer = async (use: (login: Login) => Promise<void> | void): Promise<void> => {
        const askedAt = clock.monotonic();
        const credentials = checked(await inTime(Promise.resolve(detached(ask)), clock));
        if (!over) await use(credentials);
        const { expiresIn } = credentials;
        if (expiresIn !== undefined) askIn(askedAt + 0.8 * expiresIn - clock.monotonic());
      };
      const askAgain = async (): Promise<void> => {
        try {
          await answer(renew);
          pauses.reset();
        } catch (error) {
          if (over) return;
          failed(error);
          askIn(pauses.next());
        }
      };
      let login: Login = {};
      await answer((first) => {
        login = first;
      });
      return {
        login,
        stop() {
          over = true;
          timer?.cancel();
        },
      };
    },
  };
}

/** Rejects when the answer takes too long. */
function inTime<T>(answer: Promise<T>, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new Error(`no answer within ${CREDENTIALS_MS} ms`));
    const timer = clock.setTimer(CREDENTIALS_MS, late);
    answer.finally(() => timer.cancel()).then(resolve, reject);
  });
}

function checked(given: Credentials | undefined): Credentials {
  const { username, password, expiresIn } = (given ?? {}) as Partial<Credentials>;
  const isUser = username === undefined || typeof username === 'string';
  if (given !== undefined && isUser && typeof password === 'string' && (expiresIn === undefined || expiresIn > 0))
    return given;
  throw new Error('credentials must be { username?: string, password: string, expiresIn?: milliseconds }');
}

/** Connections whose credentials a source gives. Credentials that the server rejects may be right the next time. */
const asking = new WeakSet<Redis>();

export const asksForCredentials = (redis: Redis): boolean => asking.has(redis);

/** Sets the credentials before each connect, to those that `current` returns at that time. */
export function readBeforeConnect(redis: Redis, current: () => object): void {
  const open = redis.connect.bind(redis);
  const connect = (): Promise<void> => {
    Object.assign(redis.options, current());
    return open();
  };
  redis.connect = connect;
}

/** Asks the source before each connect, and authenticates again, in place, when the source has newer credentials. */
export function askBeforeConnect(redis: Redis, source: CredentialsSource, clock: Clock): void {
  asking.add(redis);
  const open = redis.connect.bind(redis);
  const close = redis.disconnect.bind(redis);
  let opening: Promise<void> | undefined;
  let closed: ((error: Error) => void) | undefined;
  let isClosed = false;
  let lent: Lent | undefined;
  const giveBack = (): void => {
    lent?.stop();
    lent = undefined;
  };
  const use = ({ username = '', password = '' }: Login): void => {
    Object.assign(redis.options, { username: password === '' ? '' : username, password });
  };
  const failed = (what: string, cause: unknown): Error => {
    const error = new Error(what, { cause: withoutArguments(cause) });
    redis.emit('error', error);
    return error;
  };
  const renew = async (login: Login): Promise<void> => {
    use(login);
    if (redis.status !== 'ready') return;
    // With RESP2, Redis refuses AUTH while a connection has subscriptions.
    if (redis.mode === 'subscriber') redis.disconnect(true);
    else if (login.password) await authenticate(redis, login.username, login.password);
  };
  /** Settles in time, or when the connection is closed for good. */
  const ask = async (): Promise<Lent> => {
    const lending = source.lend(renew, (cause) => failed('the credentials could not be renewed', cause));
    const closing = new Promise<never>((_, reject) => (closed = reject));
    try {
      return await inTime(Promise.race([lending, closing]), clock);
    } catch (error) {
      void lending.then(
        (late) => late.stop(),
        () => undefined,
      );
      throw error;
    }
  };
  const start = async (): Promise<void> => {
    giveBack();
    try {
      lent = await ask();
      use(lent.login);
    } catch (cause) {
      giveBack();
      if (isClosed) throw cause;
      const error = failed('there are no credentials for the connection', cause);
      // As ioredis does when it cannot connect. `keepTrying` then tries again.
      redis.status = 'end';
      redis.emit('end');
      throw error;
    }
    if (!isClosed) return open();
    giveBack();
    throw new Error('Connection is closed.');
  };
  const connect = (): Promise<void> => (opening ??= start().finally(() => (opening = undefined)));
  const disconnect = (reconnect = false): void => {
    if (!reconnect) {
      isClosed = true;
      closed?.(new Error('Connection is closed.'));
      giveBack();
    }
    close(reconnect);
  };
  Object.assign(redis, { connect, disconnect });
  redis.on('close', giveBack);
}

async function authenticate(redis: Redis, username: string | undefined, password: string): Promise<void> {
  try {
    await (username ? redis.auth(username, password) : redis.auth(password));
  } catch (error) {
    if (!isPasswordUnneeded(error as Error)) throw error;
  }
}

/**
 * Lets ioredis print its warning about a password that the server does not need for the first connection of a client
 * only. ioredis prints it for each connection.
 */
export function warnOnce(redis: Redis, client: object): void {
  const auth = redis.auth.bind(redis) as (...args: unknown[]) => Promise<unknown>;
  const quietly = async (...args: unknown[]): Promise<unknown> => {
    try {
      return await auth(...args);
    } catch (error) {
      if (!isPasswordUnneeded(error as Error)) throw error;
      if (warned.has(client)) return 'OK';
      warned.add(client);
      throw error;
    }
  };
  // ioredis 5 passes a callback.
  const replaced = (...args: unknown[]): Promise<unknown> => {
    const callback = args.at(-1);
    if (typeof callback !== 'function') return quietly(...args);
    const told = callback as (error: unknown, reply?: unknown) => void;
    return quietly(...args.slice(0, -1)).then((reply) => told(null, reply), told);
  };
  Object.assign(redis, { auth: replaced });
}

const warned = new WeakSet<object>();
