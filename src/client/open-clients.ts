/* Warns of a program that creates clients again and again, such as one for each request, and does not close them. */
import { warn } from '../warn.js';
import { createHash } from 'node:crypto';

/** So many open clients of equal options are a mistake. */
const MANY = 10;
/** Options of clients are not nested deeper. What is deeper is compared by its identity. */
const MAX_DEPTH = 4;

/** The number of open clients by the hash of their options, which have credentials. */
const open = new Map<string, number>();
let warned = false;

/** Counts a client by the options that the user passed. Returns a function for the moment in which the client is closed. */
export function countClient(options: object): () => void {
  const key = createHash('sha256').update(textOf(options)).digest('base64');
  const count = (open.get(key) ?? 0) + 1;
  open.set(key, count);
  if (count >= MANY && !warned) {
    warned = true;
    warn(
      'HOLDFAST_MANY_CLIENTS',
      `${count} clients with the same options are open in this process, and each has connections of its own. ` +
        'Create one client per process, keep it, and close() it at the end.',
    );
  }
  return () => {
    const left = (open.get(key) ?? 0) - 1;
    if (left > 0) open.set(key, left);
    else open.delete(key);
  };
}

/** A text that is the same for equal options. */
function textOf(value: unknown, depth = 0): string {
  if (typeof value === 'function') return idOf(value);
  if (typeof value !== 'object' || value === null) return `${typeof value} ${JSON.stringify(String(value))}`;
  if (depth > MAX_DEPTH || !isPlain(value)) return idOf(value);
  const entries = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${textOf(inner, depth + 1)}`);
  return `{ ${entries.sort().join(', ')} }`;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}

const ids = new WeakMap<object, string>();
let lastId = 0;

/** The identity of an object, such as a connection of the user. */
function idOf(value: object): string {
  const id = ids.get(value) ?? `#${(lastId += 1)}`;
  ids.set(value, id);
  return id;
}
