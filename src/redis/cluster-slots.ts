/* Maps keys and channels to slots of a Redis Cluster, and slots to servers. */

export const SLOTS = 16_384;

const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The slot of a key, as Redis Cluster computes it: from the text between the first braces, or from the whole key. */
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
 * Whether all keys and channels that Redisson builds from this name are in the slot of the name. Redisson wraps a name
 * in braces unless the name contains a `{`. Redisson looks for the first `}` of the whole name, so the `{` must come
 * before it.
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

/** One row of the reply to CLUSTER SLOTS. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: NodeAddress;
  readonly replicas: readonly NodeAddress[];
}

/** `more` is a list of names and values in turn. */
type AnnouncedNode = [host: string | null, port: number | string, id?: string, more?: string[]];

/** Redis announces this instead of a host if clients must use host names and the node has none. */
const NAMELESS = '?';

/** Decodes the reply to CLUSTER SLOTS. `asked` is the address of the node that replied. */
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

/** If the node announces no host, or does not know its own, the host is the one that the client connected to. */
function addressOf([announced, port, , more = []]: AnnouncedNode, asked: NodeAddress): NodeAddress {
  const host = announced === NAMELESS ? more.find((_, at) => more[at - 1] === 'ip') : announced;
  return { host: host || asked.host, port: Number(port) };
}

export interface Redirection {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  /** `undefined`: the host of the node that sent the redirection. */
  readonly host: string | undefined;
  readonly port: number;
}

/**
 * Decodes an error such as `MOVED 3999 127.0.0.1:6381`. For a nameless node it returns `undefined`, so that the client
 * looks for the node in the map.
 */
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
