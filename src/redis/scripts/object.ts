import { objectForceUnlock, objectInspect, objectInspectAll } from './generated.js';
import { replyDone } from './replies.js';
import type { TimeLeft } from '../../lease-time.js';
import { bind, replyInt, replyTimeLeft } from './script.js';

export interface InspectReply {
  readonly type: string;
  readonly left: TimeLeft;
  /** Fields and values in turn, or the value of a string key. */
  readonly content: readonly string[];
  readonly queue: readonly string[];
  readonly token: string;
  /** Permit ids and remaining times, in ms, in turn. */
  readonly permits: readonly (string | number)[];
  /** The numbers of all fields, waiters and permits. Fewer of them may have been read. */
  readonly sizes: readonly [fields: number, queue: number, permits: number];
}

export const inspect = bind(objectInspect, { reply: replyInspect });

/** Reads several names of one server. The keys of all names but the first are arguments. */
export const inspectAll = bind(objectInspectAll, {
  reply: (raw) => (raw as unknown[]).map(replyInspect),
  // The names of one page have several slots. The caller continues with one name at a time.
  ifSplit: () => 'fail',
});

/** Frees a lock of any kind if the owner has it. */
export const forceUnlock = bind(objectForceUnlock, { reply: replyDone });

function replyInspect(raw: unknown): InspectReply {
  const [type, left, content, queue, token, permits, sizes] = raw as [
    ...[string, unknown, string[], string[], string, string[], unknown[]],
  ];
  const [fields, waiting, taken] = sizes;
  return {
    ...{ type, left: replyTimeLeft(left), content, queue, token, permits },
    sizes: [replyInt(fields), replyInt(waiting), replyInt(taken)],
  };
}
