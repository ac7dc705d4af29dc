import { InvalidArgumentError } from './errors.js';
import { checkWellFormed } from './options.js';

const FORMAT = Symbol.for('holdfast.lock-name.1');

/** A name with a group. {@link lockName} makes it, and every call that takes a name accepts it. */
export class LockName {
  /** The name, as Redis and the events have it. */
  readonly name: string;
  /** The template of the name, with `{}` in place of each value: `order:{}`. It is the group of the lock in metrics. */
  readonly group: string;
  /** @internal */
  readonly [FORMAT] = true;

  /** @internal */
  constructor(name: string, group: string) {
    this.name = name;
    this.group = group;
  }

  /** The name. */
  toString(): string {
    return this.name;
  }
}

/** A name with a group, or a name without one. */
export type Named = string | { readonly name: string; readonly group: string | undefined };

/** Also returns `true` for a name that another copy of the package made. */
export const isLockName = (value: unknown): value is LockName =>
  typeof value === 'object' && value !== null && FORMAT in value;

export const nameOf = (named: Named): string => (typeof named === 'string' ? named : named.name);

export const groupOf = (named: Named): string | undefined => (typeof named === 'string' ? undefined : named.group);

/** What a value of a name can be. A number must be finite, and a text must not be empty. */
export type LockNameValue = string | number | bigint | boolean;

/**
 * Builds the name of a lock from a template. A name that contains `undefined` or `[object Object]` would be the same for
 * many objects, so the tag refuses such values.
 *
 * - Different values give different names. The tag writes `{`, `}` and `%` in a value as `%7B`, `%7D` and `%25`. If
 *   another value follows, it also writes the first character of the text between the two values like that: in
 *   `` `${tenant}:${id}` ``, a colon in `tenant` becomes `%3A`. Every other character stays as it is.
 * - A value cannot change the hash tag of a cluster, because it cannot contain a brace. Braces in the text of the template
 *   stay: `` lockName`{order:${id}}:items` `` has the hash tag `order:42`.
 * - The template is the group of the lock in events, diagnostics channels and metrics: `order:{}`.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: a value is `undefined`, `null`, `NaN`, infinite, an empty
 *   text, an object, a symbol or a function. Or two values follow each other without text between them, or that text begins
 *   with `%`. The error names the value.
 * @example
 * const lock = client.getLock(lockName`order:${orderId}`);
 * lock.name; // 'order:42'
 */
export function lockName(text: TemplateStringsArray, ...values: readonly LockNameValue[]): LockName {
  const { group, separators } = templateOf(text);
  let name = text[0] as string;
  values.forEach((value, i) => {
    name += escaped(textOf(value, argumentOf(i, group)), separators[i]) + (text[i + 1] as string);
  });
  if (name === '') throw new InvalidArgumentError('name', 'a text that is not empty', name);
  return new LockName(name, group);
}

/** A template, after the check of its text. */
interface Template {
  readonly group: string;
  /** For each value, the first character of the text between it and the next value; `undefined` for the last value. */
  readonly separators: readonly (string | undefined)[];
}

/** JavaScript passes the same array for each run of a template. */
const templates = new WeakMap<TemplateStringsArray, Template>();

function templateOf(text: TemplateStringsArray): Template {
  const known = templates.get(text);
  if (known !== undefined) return known;
  if (!Array.isArray(text) || !text.every((part) => typeof part === 'string')) {
    throw new InvalidArgumentError('template', 'a template literal, as in lockName`order:${id}`', text);
  }
  const group = text.join('{}');
  checkWellFormed(group, 'template');
  const separators = text
    .slice(1)
    .map((between, i) => (i === text.length - 2 ? undefined : (/^./su.exec(between)?.[0] ?? '')));
  separators.forEach((separator, i) => {
    if (separator !== '' && separator !== '%') return;
    throw new InvalidArgumentError(
      argumentOf(i, group),
      'followed by text that does not begin with "%", because a value follows',
      separator,
    );
  });
  const template = { group, separators };
  templates.set(text, template);
  return template;
}

const argumentOf = (i: number, group: string): string => `value ${i + 1} of lockName\`${group}\``;

function textOf(value: unknown, argument: string): string {
  switch (typeof value) {
    case 'string':
      if (value !== '') return checkWellFormed(value, argument);
      break;
    case 'number':
      if (Number.isFinite(value)) return String(value);
      break;
    case 'bigint':
    case 'boolean':
      return String(value);
    default:
  }
  throw new InvalidArgumentError(argument, 'a text that is not empty, a finite number, a bigint or a boolean', value);
}

/** Writes the characters that could change the structure of the name as `%` and two hex digits for each byte. */
function escaped(value: string, separator: string | undefined): string {
  if (!/[{}%]/.test(value) && (separator === undefined || !value.includes(separator))) return value;
  return value.replaceAll(/./gsu, (char) => ('{}%'.includes(char) || char === separator ? encoded(char) : char));
}

const encoded = (char: string): string => Buffer.from(char).toString('hex').toUpperCase().replace(/../g, '%$&');
