/* Plain reads of one server. They have no key, so the caller names the connection. */
import { defineRead, replyArray, replyInt, replyTexts } from './script.js';

export interface ScanReply {
  /** Where the next page begins; `0` after the last page. */
  readonly cursor: string;
  readonly keys: readonly string[];
}

export const scan = defineRead<
  [cursor: string, match: 'match', pattern: string, count: 'count', keys: string, type: 'type', type: string],
  ScanReply,
  []
>('scan', (raw) => {
  const [cursor, keys] = replyArray(raw);
  return { cursor: String(cursor), keys: replyTexts(keys) };
});

/** Number of subscribers of each channel, in the order of the channels. */
export const subscribers = defineRead<[ask: 'numsub' | 'shardnumsub', ...channels: string[]], number[], []>(
  'pubsub',
  (raw) =>
    replyArray(raw)
      .filter((_, at) => at % 2 === 1)
      .map(replyInt),
);

/** The channels with subscribers whose names match a pattern. */
export const channels = defineRead<[ask: 'channels' | 'shardchannels', pattern: string], string[], []>(
  'pubsub',
  replyTexts,
);

/** The text of INFO: `name:value` lines. */
export const info = defineRead<[] | [section: 'server'], string, []>('info', String);

/** The time of the server, in epoch ms. */
export const time = defineRead<[], number, []>('time', (raw) => {
  const [seconds, micros] = replyArray(raw);
  return replyInt(seconds) * 1_000 + replyInt(micros) / 1_000;
});

/** One line for each connection. */
export const connections = defineRead<[list: 'list'], string, []>('client', String);
