import { spinLockRelease } from './generated.js';
import { replyRelease } from './replies.js';
import { bind, rollIn } from './script.js';

export const release = bind(spinLockRelease, {
  reply: replyRelease,
  rollOf: ([, waiters, own]) => rollIn(waiters, own, 1),
});
