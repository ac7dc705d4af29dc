import releaseSource from '../../../lua/spin-lock/release.lua';
import { defineScript, replyInt } from './script.js';
import type { ReleaseReply } from './replies.js';

export const release = defineScript<[lock: string], string[], ReleaseReply>({
  file: 'spin-lock/release',
  source: releaseSource,
  keys: 1,
  args: 'variable',
  notAfter: false,
  reply: (raw) => (replyInt(raw) === 1 ? 'freed' : 'gone'),
});
