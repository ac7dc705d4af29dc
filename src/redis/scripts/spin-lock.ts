import { spinLockRelease } from './generated.js';
import { replyRelease } from './replies.js';
import { bind } from './script.js';

export const release = bind(spinLockRelease, { reply: replyRelease });
