import { RefusedError } from '../errors.js';
import { missingRule, type RefusedRequest } from './permissions.js';

/**
 * What an error of one attempt says about the command.
 * - `not-sent`: it never left the client.
 * - `not-executed`: the server answered without running it, and a later attempt may do better.
 * - `unknown-script`: the server does not have the script's text any more.
 * - `refused`: the server answered without running it, and will again.
 * - `unanswered`: its bytes were written and nobody said what became of them.
 */
export type FailureKind = 'not-sent' | 'not-executed' | 'unknown-script' | 'refused' | 'unanswered';

const TRANSIENT =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|UNKILLABLE|MOVED|ASK)\b|max number of clients/;
const NON_LOCAL = /\battempted to access a non local key\b/;
const CREDENTIALS = /^(NOAUTH|WRONGPASS|NOPERM)\b|invalid password|without any password/i;

export class NotSentError extends Error {}
export class TooLateError extends Error {}

export function failureKind(error: Error): FailureKind {
  if (error instanceof NotSentError || error.message.startsWith("Stream isn't writeable")) return 'not-sent';
  if (error instanceof TooLateError) return 'not-executed';
  // Only an answer of the server has this name; everything else is the connection's.
  if (error.name !== 'ReplyError') return 'unanswered';
  // A script's error carries the server's own word after its text when a command inside it was refused.
  if (error.message.startsWith('NOSCRIPT')) return 'unknown-script';
  if (TRANSIENT.test(error.message) || isSplitSlot(error)) return 'not-executed';
  if (/-(READONLY|MASTERDOWN|CLUSTERDOWN|NOREPLICAS)\b/.test(error.message)) return 'not-executed';
  return 'refused';
}

/** The server said that it is a replica. */
export const isNoMaster = (error: Error): boolean =>
  error.name === 'ReplyError' && /^(READONLY|MASTERDOWN)\b|-(READONLY|MASTERDOWN)\b/.test(error.message);

/**
 * A slot moves, and not all keys of the command are at this node, or a script looked for one that is not. Scripts keep
 * such a look for what does no harm when it is left out, or done again.
 */
export const isSplitSlot = (error: Error): boolean =>
  error.name === 'ReplyError' && (error.message.startsWith('TRYAGAIN') || NON_LOCAL.test(error.message));

/** A request has failed because of that. */
export const failedBySplit = (error: Error | undefined): boolean =>
  error?.cause instanceof Error && isSplitSlot(error.cause);

/** The refusal came from a command inside a script, which may have changed something before. */
export const isRefusedInside = (error: Error): boolean =>
  /\bscript\b/i.test(error.message) && !error.message.startsWith('OOM');

/** The command is not there for us, and will not be: by permission, or because the provider has taken it away. */
export const isWithheld = (error: Error): boolean =>
  error.name === 'ReplyError' &&
  /NOPERM|unknown|unsupported|disabled|not (support|allow)|no permission/i.test(error.message);

export const isCredentialsError = (error: Error): boolean => CREDENTIALS.test(error.message);

/** The server answers, but will not have us: credentials, protected mode, a database that there is not. */
export const isLockedOut = (error: Error): boolean => failureKind(error) === 'refused';

/** ioredis adds what was sent to the server's answer; for AUTH that is the password. */
export function withoutArguments<E>(error: E): E {
  if (typeof error === 'object' && error !== null && 'command' in error) delete error.command;
  return error;
}

/** Says what was refused and what to allow; never repeats arguments, which may be secrets of the user. */
export function refusal(operation: string, error: Error, request: RefusedRequest = {}): RefusedError {
  const message = error.message;
  const rule = missingRule(message, request);
  let hint = '';
  if (rule !== undefined) {
    hint = `: give the user of this connection ${rule} (ACL SETUSER); see README, "What Redis must allow"`;
  } else if (/NOPERM|permission/i.test(message)) {
    hint = ': see README, "What Redis must allow"';
  } else if (/\bOOM\b/.test(message)) {
    hint = ': the server is at its maxmemory; free memory or raise it';
  } else if (/WRONGTYPE|not an integer/.test(message)) {
    hint = ': the key of this name holds something of another kind; use another name, or a keyPrefix';
  }
  return new RefusedError(`Redis refused ${operation}: ${message.replace(/\.$/, '')}${hint}`, rule, {
    cause: withoutArguments(error),
  });
}
