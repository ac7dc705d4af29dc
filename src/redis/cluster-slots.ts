/* Which slot of a cluster a key or channel is in, and who has which slot. */

export const SLOTS = 16_384;

const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The slot of a key by the rules of Redis Cluster: of what is between the first braces, if there is anything. */
export function keySlot(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const from = close > open + 1 ? open + 1 : 0;
  const to = close > open + 1 ? close : key.length;
  let crc = 0;
  for (let i = from; i < to; i++) {
    const code = key.charCodeAt(i);
    if (code > 127) return crcOf(Buffer.from(key.slice(from, to))) % SLOTS;
    crc = ((crc << 8) ^ (CRC16[(crc >> 8) ^ code] as number)) & 0xffff;
  }
  return crc % SLOTS;
}

function crcOf(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) ^ (CRC16[(crc >> 8) ^ byte] as number)) & 0xffff;
  return crc;
}

/**
 * Whether all keys and channels that Redisson builds from this name are in its slot: it wraps a name in braces unless
 * there is a `{` anywhere in it. A JVM looks for the first `}` of the whole name, so none may come before the `{`.
 */
export function fitsOneSlot(name: string): boolean {
  const open = name.indexOf('{');
  const close = name.indexOf('}');
  return open < 0 ? close < 0 : close > open + 1;
}

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

export const addressText = ({ host, port }: NodeAddress): string => `${host}:${port}`;

/** One row of CLUSTER SLOTS. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: NodeAddress;
  readonly replicas: readonly NodeAddress[];
}

/** Host, port, id, and other names and values. */
type AnnouncedNode = [host: string | null, port: number | string, id?: string, more?: string[]];

/** Instead of the host, where clients shall use names and the node was given none. Any host may be meant. */
const NAMELESS = '?';

/** Reads the answer to CLUSTER SLOTS. */
export function slotRanges(reply: unknown, asked: NodeAddress): SlotRange[] {
  return (reply as [number | string, number | string, AnnouncedNode, ...AnnouncedNode[]][]).map(
    ([first, last, master, ...replicas]) => ({
      first: Number(first),
      last: Number(last),
      master: addressOf(master, asked),
      replicas: replicas.map((replica) => addressOf(replica, asked)),
    }),
  );
}

/** A host that is not told, or not known to the node itself, is the one that we asked. */
function addressOf([announced, port, , more = []]: AnnouncedNode, asked: NodeAddress): NodeAddress {
  const host = announced === NAMELESS ? more.find((_, at) => more[at - 1] === 'ip') : announced;
  return { host: host || asked.host, port: Number(port) };
}

export interface Redirection {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  /** `undefined`: the host of the node that said so. */
  readonly host: string | undefined;
  readonly port: number;
}

/** Reads `MOVED 3999 127.0.0.1:6381`. A nameless node can only be found in the map. */
export function redirectionIn(message: string): Redirection | undefined {
  const [, kind, slot, host, port] = /^(MOVED|ASK) (\d+) (.*):(\d+)$/.exec(message) ?? [];
  if (kind === undefined || host === NAMELESS) return undefined;
  return {
    kind: kind as Redirection['kind'],
    slot: Number(slot),
    host: host === '' ? undefined : host,
    port: Number(port),
  };
}
