import acquireSource from '../../../lua/group-lock/acquire.lua';
import acquireNestedSource from '../../../lua/group-lock/acquire-nested.lua';
import releaseSource from '../../../lua/group-lock/release.lua';
import releasePartialSource from '../../../lua/group-lock/release-partial.lua';
import renewSource from '../../../lua/group-lock/renew.lua';
import stateSource from '../../../lua/group-lock/state.lua';
import { defineScript, replyInt, replyInts } from './script.js';
import type { AcquireReply, HeldReply, ReleaseReply } from './replies.js';

export interface GroupState {
  /** Time, in ms, until the last of the values is free; -2: all values are free. */
  readonly leftMs: number;
  readonly holdCount: number;
  readonly owners: readonly string[];
}

const heldReply = (raw: unknown): HeldReply => (replyInt(raw) === 1 ? 'held' : 'gone');

export const acquire = defineScript<
  [group: string],
  [owner: string, leaseMs: number, ...values: string[]],
  AcquireReply
>({
  file: 'group-lock/acquire',
  source: acquireSource,
  keys: 1,
  args: 'variable',
  notAfter: true,
  reply: (raw) => (raw === null ? undefined : replyInt(raw)),
  confirmed: (reply) => reply === undefined,
});

export const acquireNested = defineScript<
  [group: string],
  [owner: string, leaseMs: number, ...valuesAndCounts: (string | number)[]],
  HeldReply
>({
  file: 'group-lock/acquire-nested',
  source: acquireNestedSource,
  keys: 1,
  args: 'variable',
  notAfter: true,
  reply: heldReply,
});

export const releasePartial = defineScript<
  [group: string],
  [owner: string, publish: string, channel: string, longestMs: number, ...valuesCountsAndLefts: (string | number)[]],
  HeldReply
>({
  file: 'group-lock/release-partial',
  source: releasePartialSource,
  keys: 1,
  args: 'variable',
  notAfter: true,
  reply: heldReply,
  publishedPayload: (reply) => (reply === 'held' ? '0' : undefined),
});

export const release = defineScript<
  [group: string],
  [publish: string, channel: string, owners: number, needed: number, ...ownersAndValues: string[]],
  ReleaseReply
>({
  file: 'group-lock/release',
  source: releaseSource,
  keys: 1,
  args: 'variable',
  notAfter: false,
  reply(raw) {
    const n = replyInt(raw);
    return n === 1 ? 'freed' : n === 2 ? 'partly' : 'gone';
  },
  publishedPayload: (reply) => (reply === 'gone' ? undefined : '0'),
});

/** For each hold: the time, in ms, until its lease ends, or 0 if its owner lost one of the values. */
export const renew = defineScript<string[], (string | number)[], number[]>({
  file: 'group-lock/renew',
  source: renewSource,
  keys: 'variable',
  args: 'variable',
  notAfter: true,
  reply: replyInts,
});

export const state = defineScript<[group: string], [owner: string, ...values: string[]], GroupState>({
  file: 'group-lock/state',
  source: stateSource,
  keys: 1,
  args: 'variable',
  notAfter: false,
  reply(raw) {
    const [leftMs, holdCount, ...owners] = raw as [unknown, unknown, ...string[]];
    return { leftMs: replyInt(leftMs), holdCount: replyInt(holdCount), owners };
  },
});
