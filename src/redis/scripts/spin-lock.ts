import releaseSource from '../../../lua/spin-lock/release.lua';
import { replyRelease, type ReleaseReply } from './replies.js';
import { defineScript } from './script.js';

export const release = defineScript<[lock: string], string[], ReleaseReply>({
  file: 'spin-lock/release',
  source: releaseSource,
  reply: replyRelease,
});
