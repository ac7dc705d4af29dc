import { requestCancel } from './generated.js';
import { replyDone } from './replies.js';
import { bind } from './script.js';

/** `true` if the request had run. Its effect remains. With `false`, the request will never run. */
export const cancel = bind(requestCancel, { reply: replyDone });
