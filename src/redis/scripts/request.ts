import cancelSource from '../../../lua/request/cancel.lua';
import { replyDone } from './replies.js';
import { defineScript } from './script.js';

/** `true` if the request had run. Its effect remains. With `false`, the request will never run. */
export const cancel = defineScript<[requests: string], [lane: number, sequence: number], boolean>({
  file: 'request/cancel',
  source: cancelSource,
  reply: replyDone,
});
