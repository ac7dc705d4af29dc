/*
 * HighwayHash-128, from which Redisson derives the names of the values of a group multi-lock. A Uint32Array stores each
 * 64-bit number as two halves of 32 bits, the lower half first. With BigInt, the hashes of 500 values would take longer
 * than the round trip that locks them. The packages in the npm registry are native code or WebAssembly, which is more
 * to install than this file is to read.
 */

/** The key that Redisson uses. */
const KEY = words(0x9e3779b97f4a7c15n, 0xf39cc0605cedc834n, 0x1082276bf3a27251n, 0xf86c6a11d0c18e95n);
const MUL0 = words(0xdbe6d5d5fe4cce2fn, 0xa4093822299f31d0n, 0x13198a2e03707344n, 0x243f6a8885a308d3n);
const MUL1 = words(0x3bd39e10cb0ef593n, 0xc0acf169b5f18a8cn, 0xbe5466cf34e90c6cn, 0x452821e638d01377n);

const PACKET = 32;
const ROUNDS = 6;

function words(...of: readonly bigint[]): Uint32Array {
  return Uint32Array.from(of.flatMap((word) => [Number(word & 0xffffffffn), Number(word >> 32n)]));
}

interface State {
  readonly v0: Uint32Array;
  readonly v1: Uint32Array;
  readonly mul0: Uint32Array;
  readonly mul1: Uint32Array;
  readonly lanes: Uint32Array;
}

/** Returns the 16 bytes of the hash: two 64-bit numbers, each in big-endian order. */
export function highwayHash128(data: Uint8Array, key: Uint32Array = KEY): Buffer {
  const state = start(key);
  let at = 0;
  for (; at + PACKET <= data.length; at += PACKET) {
    readLanes(data, at, state.lanes);
    update(state);
  }
  if (at < data.length) remainder(data.subarray(at), state);
  for (let round = 0; round < ROUNDS; round += 1) permute(state);
  const { v0, v1, mul0, mul1 } = state;
  const hash = Buffer.alloc(16);
  for (let half = 0; half < 2; half += 1) {
    const lo = 2 * half;
    const hi = lo + 1;
    const low = (v0[lo] as number) + (mul0[lo] as number) + (v1[lo + 4] as number) + (mul1[lo + 4] as number);
    const high =
      (v0[hi] as number) +
      (mul0[hi] as number) +
      (v1[hi + 4] as number) +
      (mul1[hi + 4] as number) +
      Math.floor(low / 2 ** 32);
    hash.writeUInt32BE(high >>> 0, 8 * half);
    hash.writeUInt32BE(low >>> 0, 8 * half + 4);
  }
  return hash;
}

function start(key: Uint32Array): State {
  const state = {
    v0: new Uint32Array(8),
    v1: new Uint32Array(8),
    mul0: MUL0.slice(),
    mul1: MUL1.slice(),
    lanes: new Uint32Array(8),
  };
  for (let i = 0; i < 8; i += 1) {
    state.v0[i] = (MUL0[i] as number) ^ (key[i] as number);
    state.v1[i] = (MUL1[i] as number) ^ (key[i ^ 1] as number);
  }
  return state;
}

function readLanes(data: Uint8Array, at: number, lanes: Uint32Array): void {
  for (let i = 0; i < 8; i += 1) {
    const from = at + 4 * i;
    lanes[i] =
      (data[from] as number) |
      ((data[from + 1] as number) << 8) |
      ((data[from + 2] as number) << 16) |
      ((data[from + 3] as number) << 24);
  }
}

/** Adds the rest of the data: at least one byte, and fewer bytes than a packet. */
function remainder(data: Uint8Array, state: State): void {
  const { v0, v1, lanes } = state;
  const size = data.length;
  for (let i = 0; i < 8; i += 2) {
    add(v0, i, size, size);
    v1[i] = ((v1[i] as number) << size) | ((v1[i] as number) >>> (32 - size));
    v1[i + 1] = ((v1[i + 1] as number) << size) | ((v1[i + 1] as number) >>> (32 - size));
  }
  const packet = new Uint8Array(PACKET);
  const whole = size & ~3;
  const left = size & 3;
  packet.set(data.subarray(0, whole));
  if ((size & 16) !== 0) {
    packet.set(data.subarray(size - 4), PACKET - 4);
  } else if (left > 0) {
    packet[16] = data[whole] as number;
    packet[17] = data[whole + (left >> 1)] as number;
    packet[18] = data[whole + left - 1] as number;
  }
  readLanes(packet, 0, lanes);
  update(state);
}

function permute(state: State): void {
  for (let i = 0; i < 8; i += 1) state.lanes[i] = state.v0[((i + 4) % 8) ^ 1] as number;
  update(state);
}

function update({ v0, v1, mul0, mul1, lanes }: State): void {
  for (let i = 0; i < 8; i += 2) {
    add(v1, i, mul0[i] as number, mul0[i + 1] as number);
    add(v1, i, lanes[i] as number, lanes[i + 1] as number);
    xorProduct(mul0, i, v1[i] as number, v0[i + 1] as number);
    add(v0, i, mul1[i] as number, mul1[i + 1] as number);
    xorProduct(mul1, i, v0[i] as number, v1[i + 1] as number);
  }
  zip(v1, v0, 0);
  zip(v1, v0, 4);
  zip(v0, v1, 0);
  zip(v0, v1, 4);
}

/** Adds the bytes of two numbers, in the order that the algorithm prescribes, to two other numbers. */
function zip(from: Uint32Array, to: Uint32Array, at: number): void {
  const aLo = from[at] as number;
  const aHi = from[at + 1] as number;
  const bLo = from[at + 2] as number;
  const bHi = from[at + 3] as number;
  add(
    to,
    at,
    ((aLo >>> 24) | ((bHi & 0xff) << 8) | (aLo & 0xff0000) | ((aHi & 0xff00) << 16)) >>> 0,
    (((bHi >>> 16) & 0xff) | (aLo & 0xff00) | ((bHi >>> 8) & 0xff0000) | (aLo << 24)) >>> 0,
  );
  add(
    to,
    at + 2,
    ((bLo >>> 24) | ((aHi & 0xff) << 8) | (bLo & 0xff0000) | ((bHi & 0xff00) << 16)) >>> 0,
    (((bLo >>> 8) & 0xff) | ((aHi >>> 8) & 0xff00) | ((bLo & 0xff) << 16) | (aHi & 0xff000000)) >>> 0,
  );
}

function add(to: Uint32Array, at: number, lo: number, hi: number): void {
  const low = (to[at] as number) + lo;
  to[at] = low;
  to[at + 1] = (to[at + 1] as number) + hi + (low > 0xffffffff ? 1 : 0);
}

/** Applies XOR with all 64 bits of a product. Each part of the product is small enough for a double to be exact. */
function xorProduct(to: Uint32Array, at: number, a: number, b: number): void {
  const aLo = a & 0xffff;
  const aHi = a >>> 16;
  const bLo = b & 0xffff;
  const bHi = b >>> 16;
  const middle = aHi * bLo + ((aLo * bLo) >>> 16);
  const other = aLo * bHi + (middle & 0xffff);
  to[at] = (to[at] as number) ^ Math.imul(a, b);
  to[at + 1] = (to[at + 1] as number) ^ (aHi * bHi + (middle >>> 16) + (other >>> 16));
}
