import { objectForceUnlock, objectInspect, objectInspectAll } from './generated.js';
import { replyForced } from './replies.js';
import type { TimeLeft } from '../../lease-time.js';
import { bind, defineRead, replyArray, replyInt, replyText, replyTexts, replyTimeLeft, rollIn } from './script.js';

export interface InspectReply {
  readonly type: string;
  readonly left: TimeLeft;
  /** Fields and values in turn, or the value of a string key. */
  readonly content: readonly string[];
  readonly queue: readonly string[];
  readonly token: string;
  /** Permit ids and remaining times, in ms, in turn. */
  readonly permits: readonly string[];
  /** The numbers of all fields, waiters and permits. Fewer of them may have been read. */
  readonly sizes: readonly [fields: number, queue: number, permits: number];
}

export const inspect = bind(objectInspect, { reply: replyInspect });

/** Reads several names of one server. The keys of all names but the first are arguments. */
export const inspectAll = bind(objectInspectAll, {
  reply: (raw) => replyArray(raw).map(replyInspect),
  // The names of one page have several slots. The caller continues with one name at a time.
  ifSplit: () => 'fail',
});

/** Sets the expiry of a key, in ms; a repeat sets it again. */
export const expireIn = defineRead<[ms: string], number>('pexpire', replyInt);

/** Frees a lock of any kind if the owner has it. */
export const forceUnlock = bind(objectForceUnlock, {
  reply: replyForced,
  rollOf: ([, , , , , waiters, own]) => rollIn(waiters, own, 1),
});

function replyInspect(raw: unknown): InspectReply {
  const [type, left, content, queue, token, permits, sizes] = replyArray(raw);
  const [fields, waiting, taken] = replyArray(sizes);
  return {
    type: replyText(type),
    left: replyTimeLeft(left),
    content: replyTexts(content),
    queue: replyTexts(queue),
    token: replyText(token),
    permits: replyArray(permits).map(String),
    sizes: [replyInt(fields), replyInt(waiting), replyInt(taken)],
  };
}
