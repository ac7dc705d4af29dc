const EMPTY = Buffer.alloc(0);

/** The bytes are not RESP: garbage, or a protocol this bench does not read (TLS). */
export class NotRespError extends Error {
  override name = 'NotRespError';
}

/** Where the reply (RESP2 or RESP3) that begins at `from` ends; -1 while it is incomplete. */
export function replyEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (let wanted = 1; wanted > 0; wanted--) {
    const eol = bytes.indexOf('\r\n', at);
    const type = bytes[at];
    if (type === undefined) return -1;
    if (!'+-:_,#($!=*~>%|'.includes(String.fromCharCode(type))) {
      throw new NotRespError(`no reply begins with byte ${type}`);
    }
    if (eol < 0) return -1;
    const line = bytes.toString('latin1', at + 1, eol);
    at = eol + 2;
    switch (String.fromCharCode(type)) {
      case '$':
      case '!':
      case '=': {
        const length = lengthOf(line);
        if (length >= 0) at += length + 2;
        break;
      }
      case '*':
      case '~':
      case '>':
        wanted += Math.max(0, lengthOf(line));
        break;
      case '%':
        wanted += 2 * lengthOf(line);
        break;
      case '|': // an attribute precedes the element it describes and is none itself
        wanted += 2 * lengthOf(line) + 1;
        break;
    }
    if (at > bytes.length) return -1;
  }
  return at;
}

/** Where the request (array of bulk strings, or inline) that begins at `from` ends; -1 while it is incomplete. */
export function requestEnd(bytes: Buffer, from: number): number {
  if (bytes[from] !== 0x2a) {
    const eol = bytes.indexOf('\n', from);
    return eol < 0 ? -1 : eol + 1;
  }
  let eol = bytes.indexOf('\r\n', from);
  if (eol < 0) return -1;
  const count = lengthOf(bytes.toString('latin1', from + 1, eol));
  let at = eol + 2;
  for (let i = 0; i < count; i++) {
    eol = bytes.indexOf('\r\n', at);
    if (eol < 0) return -1;
    if (bytes[at] !== 0x24) throw new NotRespError('a request is an array of bulk strings');
    at = eol + 2 + lengthOf(bytes.toString('latin1', at + 1, eol)) + 2;
    if (at > bytes.length) return -1;
  }
  return at;
}

/** The strings of one whole request; empty for a request that gets no reply (an empty line or array). */
export function requestArgs(frame: Buffer): string[] {
  if (frame[0] !== 0x2a) return frame.toString('utf8').trim().split(/\s+/).filter(Boolean);
  const args: string[] = [];
  let at = frame.indexOf('\r\n') + 2;
  while (at < frame.length) {
    const eol = frame.indexOf('\r\n', at);
    const end = eol + 2 + lengthOf(frame.toString('latin1', at + 1, eol));
    args.push(frame.toString('utf8', eol + 2, end));
    at = end + 2;
  }
  return args;
}

/** The leading strings of an array or push reply; empty for any other reply. */
export function leadingStrings(frame: Buffer, limit: number): string[] {
  if (frame[0] !== 0x2a && frame[0] !== 0x3e) return [];
  const found: string[] = [];
  let at = frame.indexOf('\r\n') + 2;
  while (found.length < limit && at < frame.length) {
    const eol = frame.indexOf('\r\n', at);
    const line = frame.toString('utf8', at + 1, eol);
    if (frame[at] === 0x2b) {
      found.push(line);
      at = eol + 2;
    } else if (frame[at] === 0x24 && line !== '-1') {
      const end = eol + 2 + lengthOf(line);
      found.push(frame.toString('utf8', eol + 2, end));
      at = end + 2;
    } else {
      break;
    }
  }
  return found;
}

export const isPush = (frame: Buffer): boolean => frame[0] === 0x3e;

export function encodeRequest(args: readonly string[]): Buffer {
  return Buffer.from(`*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`);
}

/** Cuts a byte stream into whole frames, up to the first byte that is not RESP. */
export class Framer {
  #rest: Buffer = EMPTY;
  broken: NotRespError | undefined;
  constructor(private readonly end: (bytes: Buffer, from: number) => number) {}

  push(chunk: Buffer): Buffer[] {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const frames: Buffer[] = [];
    let at = 0;
    try {
      while (at < bytes.length) {
        const end = this.end(bytes, at);
        if (end < 0) break;
        frames.push(bytes.subarray(at, end));
        at = end;
      }
    } catch (error) {
      if (!(error instanceof NotRespError)) throw error;
      this.broken = error;
    }
    this.#rest = bytes.subarray(at);
    return frames;
  }

  /** Received data without a complete frame. */
  takeRest(): Buffer {
    const rest = this.#rest;
    this.#rest = EMPTY;
    return rest;
  }
}

function lengthOf(line: string): number {
  const length = Number(line);
  if (!Number.isInteger(length) || line === '') throw new NotRespError(`not a length: ${JSON.stringify(line)}`);
  return length;
}
