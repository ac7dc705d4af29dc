import type { TimeLeft } from '../../lease-time.js';
import { defineRead, replyInt, replyTimeLeft } from './script.js';

export const exists = defineRead<[], boolean>('exists', (raw) => replyInt(raw) === 1);
export const pttl = defineRead<[], TimeLeft>('pttl', replyTimeLeft);
export const hexists = defineRead<[field: string], boolean>('hexists', (raw) => replyInt(raw) === 1);
/** A counter in a hash; 0 if the field does not exist. */
export const hgetCount = defineRead<[field: string], number>('hget', (raw) => (raw === null ? 0 : replyInt(raw)));
export const hkeys = defineRead<[], string[]>('hkeys', (raw) => (Array.isArray(raw) ? raw.map(String) : []));
/** A fencing token; 0 if none was generated yet. */
export const getToken = defineRead<[], bigint>('get', (raw) => (raw === null ? 0n : BigInt(raw as string)));
/** A number in a string key; `undefined` if the key does not exist. */
export const getCount = defineRead<[], number | undefined>('get', (raw) => (raw === null ? undefined : replyInt(raw)));
