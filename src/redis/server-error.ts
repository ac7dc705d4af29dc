import { ReplyError } from 'ioredis';
import { RefusedError } from '../errors.js';
import { missingRule, type RefusedRequest } from './permissions.js';

/**
 * What the error of one attempt says about its command.
 * - `not-sent`: the command never left the client.
 * - `not-executed`: Redis did not run the command. A later attempt may succeed.
 * - `unknown-script`: Redis no longer has the source of the script, so it ran nothing.
 * - `refused`: Redis rejected the command, and would reject it again.
 * - `unanswered`: the client wrote the command and got no reply. The command may have run, or may still run.
 */
export type FailureKind = 'not-sent' | 'not-executed' | 'unknown-script' | 'refused' | 'unanswered';

/** The kind of an error that Redis sent, by its code: the first word of its message. */
type CodeKind = Extract<FailureKind, 'not-executed' | 'unknown-script' | 'refused'>;

/**
 * Every error code of Redis 6 to 8 and Valkey 7.2 to 8. docs/redis-errors.md has the same table with the reasons. A code
 * that is not listed counts as `refused`.
 */
export const CODES: Readonly<Record<string, CodeKind>> = {
  ASK: 'not-executed',
  BUSY: 'not-executed',
  BUSYGROUP: 'refused',
  BUSYKEY: 'refused',
  CLUSTERDOWN: 'not-executed',
  CROSSSLOT: 'refused',
  DENIED: 'refused',
  ERR: 'refused',
  EXECABORT: 'refused',
  INPROG: 'refused',
  INVALIDOBJ: 'refused',
  IOERR: 'refused',
  LOADING: 'not-executed',
  MASTERDOWN: 'not-executed',
  MISCONF: 'not-executed',
  MOVED: 'not-executed',
  NOAUTH: 'refused',
  NOGOODSLAVE: 'refused',
  NOGROUP: 'refused',
  NOMASTERLINK: 'not-executed',
  NOPERM: 'refused',
  NOPROTO: 'refused',
  NOQUORUM: 'refused',
  NOREPLICAS: 'not-executed',
  NOSCRIPT: 'unknown-script',
  NOSUB: 'refused',
  NOTBUSY: 'refused',
  OOM: 'refused',
  READONLY: 'not-executed',
  REDIRECT: 'not-executed',
  TRYAGAIN: 'not-executed',
  UNBLOCKED: 'not-executed',
  UNKILLABLE: 'not-executed',
  WRONGPASS: 'refused',
  WRONGTYPE: 'refused',
};

/**
 * Redis 6 puts the error of a command behind the text of the script's error, such as `@user_script:4: -MISCONF`. These
 * are states of the server, which do not begin while a script runs: so the script has written nothing.
 */
const STATE_INSIDE_SCRIPT = /-(READONLY|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|MISCONF)\b/;
const TOO_MANY_CLIENTS = /max number of clients/;
const NON_LOCAL = /\battempted to access a non local key\b/;
const CREDENTIALS = /^(NOAUTH|WRONGPASS|NOPERM)\b|invalid password|without any password/i;

/**
 * Whether Redis sent the error. All others come from the connection. In a bundle, a minifier may have renamed the class
 * of ioredis 5 or iovalkey.
 */
export const isReply = (error: Error): boolean => error.name === 'ReplyError' || error instanceof ReplyError;

export class NotSentError extends Error {}
export class TooLateError extends Error {}

export function failureKind(error: Error): FailureKind {
  if (error instanceof NotSentError || error.message.startsWith("Stream isn't writeable")) return 'not-sent';
  if (error instanceof TooLateError) return 'not-executed';
  if (!isReply(error)) return 'unanswered';
  const { message } = error;
  if (STATE_INSIDE_SCRIPT.test(message) || TOO_MANY_CLIENTS.test(message) || isSplitSlot(error)) return 'not-executed';
  return CODES[/^[A-Z]+\b/.exec(message)?.[0] ?? ''] ?? 'refused';
}

/** Names the state of the connection. ioredis names an option that the client sets, and that its user does not know. */
export const inOwnWords = (error: Error): Error =>
  failureKind(error) === 'not-sent' ? new NotSentError('the connection is closed') : error;

/** Redis replied that it is a replica. */
export const isNoMaster = (error: Error): boolean =>
  isReply(error) && /^(READONLY|MASTERDOWN)\b|-(READONLY|MASTERDOWN)\b/.test(error.message);

/**
 * The slot is migrating, and this node lacks a key of the command, or a key that a script reads. A script accesses such
 * a key only in a step that may be omitted or repeated without harm.
 */
export const isSplitSlot = (error: Error): boolean =>
  isReply(error) && (error.message.startsWith('TRYAGAIN') || NON_LOCAL.test(error.message));

/** The request failed because the slot is migrating. */
export const failedBySplit = (error: Error | undefined): boolean =>
  error?.cause instanceof Error && isSplitSlot(error.cause);

/** Returns the renewal of one item. If Redis refused it because a slot is moving, the client renews key by key. */
export const orByKey = async <I, R extends { readonly error: Error | undefined }>(
  script: { renewByKey?(item: I): Promise<R> },
  item: I,
  renewal: R,
): Promise<R> => (failedBySplit(renewal.error) && script.renewByKey !== undefined ? script.renewByKey(item) : renewal);

/** Redis rejected a command inside a script. The script may have written before that command. */
export const isRefusedInside = (error: Error): boolean =>
  /\bscript\b/i.test(error.message) && !error.message.startsWith('OOM');

/** The command is not available to this client: a permission is missing, or the provider has disabled the command. */
export const isWithheld = (error: Error): boolean =>
  isReply(error) && /NOPERM|unknown|unsupported|disabled|not (support|allow)|no permission/i.test(error.message);

export const isCredentialsError = (error: Error): boolean => CREDENTIALS.test(error.message);

/** The client sent a password, and the server wants none. The connection works without it. */
export const isPasswordUnneeded = (error: Error): boolean =>
  /no password is set|without any password configured/.test(error.message);

/** Redis replies but rejects the client: wrong credentials, protected mode, or a database that does not exist. */
export const isLockedOut = (error: Error): boolean => failureKind(error) === 'refused';

/**
 * Removes the command that ioredis attaches to the error of Redis: the arguments of AUTH are the password. Gives the
 * error of a name with several addresses a message: Node.js leaves it empty.
 */
export function withoutArguments<E>(error: E): E {
  if (typeof error !== 'object' || error === null) return error;
  if ('command' in error) delete error.command;
  const { message, errors } = error as Partial<AggregateError>;
  if (message === '' && Array.isArray(errors)) {
    const messages = errors.map((part: unknown) => (part as Partial<Error> | undefined)?.message ?? String(part));
    Object.assign(error, { message: [...new Set(messages)].join('; ') });
  }
  return error;
}

/** Names the rejected operation and the missing permission. The message contains no arguments: they may be secrets. */
export function refusal(operation: string, error: Error, request: RefusedRequest = {}): RefusedError {
  const message = error.message;
  const rule = missingRule(message, request);
  let hint = '';
  if (rule !== undefined) {
    hint = `; grant ${rule} to the user of this connection (ACL SETUSER); see docs/permissions.md`;
  } else if (/NOPERM|permission/i.test(message)) {
    hint = '; grant the user of this connection the permission that docs/permissions.md lists';
  } else if (/\bOOM\b/.test(message)) {
    hint = '; the server has reached its maxmemory, so free memory or raise the limit';
  } else if (/WRONGTYPE|not an integer/.test(message)) {
    hint = '; the key of this name has another type, so use another name or a keyPrefix';
  }
  return new RefusedError(`Redis rejected ${operation}: ${message.replace(/\.$/, '')}${hint}`, rule, {
    cause: withoutArguments(error),
  });
}
