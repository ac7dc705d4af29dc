import forceUnlockSource from '../../../lua/object/force-unlock.lua';
import inspectSource from '../../../lua/object/inspect.lua';
import inspectAllSource from '../../../lua/object/inspect-all.lua';
import { replyDone } from './replies.js';
import type { TimeLeft } from '../../lease-time.js';
import { defineScript, replyTimeLeft } from './script.js';

export interface InspectReply {
  readonly type: string;
  readonly left: TimeLeft;
  /** Fields and values in turn, or the value of a string key. */
  readonly content: readonly string[];
  readonly queue: readonly string[];
  readonly token: string;
  /** Permit ids and remaining times, in ms, in turn. */
  readonly permits: readonly (string | number)[];
}

type ObjectKeys = [object: string, queue: string, token: string, taken: string];

export const inspect = defineScript<ObjectKeys, [], InspectReply>({
  file: 'object/inspect',
  source: inspectSource,
  reply: replyInspect,
});

/** Reads several names of one server. The keys of all names but the first are arguments. */
export const inspectAll = defineScript<ObjectKeys, [...others: string[]], InspectReply[]>({
  file: 'object/inspect-all',
  source: inspectAllSource,
  reply: (raw) => (raw as unknown[]).map(replyInspect),
  // The names of one page have several slots. The caller continues with one name at a time.
  ifSplit: () => 'fail',
});

/** Frees a lock of any kind if the owner has it. */
export const forceUnlock = defineScript<
  [lock: string, queue: string, timeouts: string, alive: string, requests: string],
  [
    owner: string,
    publish: string,
    channel: string,
    readWriteChannel: string,
    readHoldBase: string,
    waitMs: number,
    lane: number,
    sequence: number,
  ],
  boolean
>({
  file: 'object/force-unlock',
  source: forceUnlockSource,
  notAfter: 'last',
  reply: replyDone,
});

function replyInspect(raw: unknown): InspectReply {
  const [type, left, content, queue, token, permits] = raw as [string, unknown, string[], string[], string, string[]];
  return { type, left: replyTimeLeft(left), content, queue, token, permits };
}
