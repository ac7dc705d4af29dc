import { describe, expect, test } from '@jest/globals';
import { highwayHash128 } from '../../src/several/group/highway-hash.js';

/** The key 00 01 02 and so on to 1f. */
const KEY = Uint32Array.from({ length: 8 }, (_, i) => 0x03020100 + 0x04040404 * i);

/** Of google/highwayhash, for the bytes 0, 1, 2 and so on, by their number. */
const PUBLISHED: readonly (readonly [number, string])[] = [
  [0, '0fed268f9d8ffec733565e767f093e6f'],
  [1, 'd6b0a8893681e7a8dc291df9eb9cdcb4'],
  [2, '3d15ad265a16da0478085638dc32e868'],
  [3, '0607621b295f0bebbfe69a0fd9cedd79'],
  [4, '26399eb46dace49e2e922ad039319208'],
  [7, '2a401fca697171b4be1f03ff9f02796c'],
  [8, 'a1e96d84280552e8695cf1c63bec0ac2'],
  [12, 'cd1f1f5f1caf9566a818ba8ce0f9c8d4'],
  [13, 'a225564112fe6157b2e94c78b8ddb848'],
  [15, '142237a52bc4af54e0796c0b6e26bcd7'],
  [16, '414460ffd5a401ad029ea3d5019f18c8'],
  [17, 'c52a4b96c51c9962ecb878b1169b5ea0'],
  [18, 'd940ca8f11fbeacef93a46d616f8d531'],
  [19, '8ac49d0ae5c0cbf53ffdbf8df51d7c93'],
  [24, 'cd001e198d4845b8d0d9d98bd8aa2d77'],
  [31, '06e7b465e8a57c2952415e3a07f5d446'],
  [32, '1984df66c1434aaa16fc1958f9b3e4b9'],
  [33, '111678afe0c6c36cf958b59de5a2849d'],
  [47, '39c27a27c86d95208db620a45160932e'],
  [62, '79a176d1aa6ba6d1f1f720c5a53a2b86'],
  [63, '74bd7018022f3ef03aea94a8ad5f4bcb'],
];

/**
 * The encoding of two ASCII letters by Redisson's default codec: the type, then the letters with the last one marked.
 */
const kryo = (text: string): Uint8Array => Uint8Array.of(3, text.charCodeAt(0), text.charCodeAt(1) | 0x80);

describe('HighwayHash-128', () => {
  test.each(PUBLISHED)('of %d bytes matches the published value', (length, expected) => {
    const data = Uint8Array.from({ length }, (_, i) => i);
    expect(highwayHash128(data, KEY).toString('hex')).toBe(expected);
  });

  test.each([
    ['v1', 'OdjxgHrO+8OZHkSYKdaZ7g=='],
    ['v2', 'B1pmxHlkmfILXSZFOsChHA=='],
    ['v3', 'rl1NnpS4Eekx1Vn+dCU1QA=='],
    ['v4', 'cfQgfajmOMGpmc7/1BHYPg=='],
  ])('of %s is the recorded field of Redisson', (value, field) => {
    expect(highwayHash128(kryo(value)).toString('base64')).toBe(field);
  });
});
