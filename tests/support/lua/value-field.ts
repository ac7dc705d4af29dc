import { highwayHash128 } from '../../../src/several/group/highway-hash.js';

/** The name of a value in the hash of its group. */
export const valueField = (value: string): string => highwayHash128(Buffer.from(value)).toString('base64').slice(0, 22);
