import { createHash } from 'node:crypto';
import type { Named, ProcessView } from '../contract/messages.js';

const MAX_NAME = 1_024;
/** Limit of texts that are short in every sensible use, such as the name of a host. */
const MAX_LABEL = 160;
/** The most bytes of one UTF-16 code unit in JSON. */
const MOST_BYTES = 6;

/** The beginning of a text that has at most this number of bytes as JSON. */
export function cut(text: string, most = MAX_NAME): string {
  if (text.length * MOST_BYTES + 2 <= most) return text;
  let kept = text.slice(0, most);
  for (let size = sizeOf(kept); size > most; size = sizeOf(kept)) {
    kept = kept.slice(0, Math.min(kept.length - 1, Math.floor((kept.length * most) / size)));
  }
  if (kept.length === text.length) return text;
  // Not the first half of a character. V8 would keep the whole text for a slice of it.
  return JSON.parse(JSON.stringify(kept.replace(/[\ud800-\udbff]$/, ''))) as string;
}

export const cutLabel = (text: string): string => cut(text, MAX_LABEL);

const sizeOf = (text: string): number => Buffer.byteLength(JSON.stringify(text));

export const idOf = (name: string): string => createHash('sha256').update(name).digest('base64url').slice(0, 22);

export const namedOf = (name: string): Named => ({ id: idOf(name), name: cut(name), length: name.length });

/** A process as a page gets it: any program may give its connections long names. */
export const cutProcess = ({ clientName, host, pid, address }: ProcessView): ProcessView => ({
  ...{ clientName: cutLabel(clientName), host: cutLabel(host), pid, address: cutLabel(address) },
});
