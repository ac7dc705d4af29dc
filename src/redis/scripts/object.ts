import inspectSource from '../../../lua/object/inspect.lua';
import { defineScript, replyInt } from './script.js';

export interface InspectReply {
  readonly type: string;
  readonly pttl: number;
  /** Fields and values in turn, or the value of a string key. */
  readonly content: readonly string[];
  readonly queue: readonly string[];
  readonly token: string;
  /** Permit ids and remaining times, in ms, in turn. */
  readonly permits: readonly (string | number)[];
}

export const inspect = defineScript<[object: string, queue: string, token: string, taken: string], [], InspectReply>({
  file: 'object/inspect',
  source: inspectSource,
  reply(raw) {
    const [type, pttl, content, queue, token, permits] = raw as [string, unknown, string[], string[], string, string[]];
    return { type, pttl: replyInt(pttl), content, queue, token, permits };
  },
});
