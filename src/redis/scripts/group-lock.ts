import acquireSource from '../../../lua/group-lock/acquire.lua';
import acquireNestedSource from '../../../lua/group-lock/acquire-nested.lua';
import releaseSource from '../../../lua/group-lock/release.lua';
import releasePartialSource from '../../../lua/group-lock/release-partial.lua';
import renewSource from '../../../lua/group-lock/renew.lua';
import stateSource from '../../../lua/group-lock/state.lua';
import {
  freedPayload,
  isGrant,
  replyAcquire,
  replyGroupRelease,
  replyHeld,
  replyRenewals,
  type AcquireReply,
  type HeldReply,
  type ReleaseReply,
  type RenewalReply,
} from './replies.js';
import type { TimeLeft } from '../../lease-time.js';
import { defineScript, replyInt, replyTimeLeft } from './script.js';

export interface GroupState {
  /** Until the last of the values is free; `missing`: all values are free. */
  readonly left: TimeLeft;
  readonly holdCount: number;
  readonly owners: readonly string[];
}

export const acquire = defineScript<
  [group: string],
  [owner: string, leaseMs: number, ...values: string[]],
  AcquireReply
>({
  file: 'group-lock/acquire',
  source: acquireSource,
  notAfter: 'first',
  reply: replyAcquire,
  isGrant,
});

export const acquireNested = defineScript<
  [group: string],
  [owner: string, leaseMs: number, ...valuesAndCounts: (string | number)[]],
  HeldReply
>({
  file: 'group-lock/acquire-nested',
  source: acquireNestedSource,
  notAfter: 'first',
  reply: replyHeld,
});

export const releasePartial = defineScript<
  [group: string],
  [owner: string, publish: string, channel: string, longestMs: number, ...valuesCountsAndLefts: (string | number)[]],
  HeldReply
>({
  file: 'group-lock/release-partial',
  source: releasePartialSource,
  notAfter: 'first',
  reply: replyHeld,
  publishedPayload: (reply) => (reply.kind === 'held' ? '0' : undefined),
});

export const release = defineScript<
  [group: string],
  [publish: string, channel: string, owners: number, needed: number, ...ownersAndValues: string[]],
  ReleaseReply
>({
  file: 'group-lock/release',
  source: releaseSource,
  reply: replyGroupRelease,
  publishedPayload: freedPayload,
});

/** One reply for each hold. `lost`: its owner lost one of the values. */
export const renew = defineScript<string[], (string | number)[], RenewalReply[]>({
  file: 'group-lock/renew',
  source: renewSource,
  notAfter: 'first',
  reply: replyRenewals,
});

export const state = defineScript<[group: string], [owner: string, ...values: string[]], GroupState>({
  file: 'group-lock/state',
  source: stateSource,
  reply(raw) {
    const [left, holdCount, ...owners] = raw as [unknown, unknown, ...string[]];
    return { left: replyTimeLeft(left), holdCount: replyInt(holdCount), owners };
  },
});
