import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { encodeRequest, Framer, replyEnd } from '../proxy/resp.js';
import { until } from '../time/until.js';

export interface MonitorLine {
  /** The server's clock, ms since the epoch. */
  readonly time: number;
  /** Upper case. */
  readonly command: string;
  readonly args: readonly string[];
  readonly database: number;
  /** The client's address, or `lua` for a command of a script. */
  readonly source: string;
}

const LINE = /^\+(\d+\.\d+) \[(\d+) ([^\]]+)\] (.*)\r\n$/s;
const QUOTED = /"((?:[^"\\]|\\.)*)"/gs;
const ESCAPED: Record<string, string> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

/**
 * All commands of a server since the log was opened, as MONITOR reports them. The log uses its own socket: ioredis 6
 * fails if the first lines arrive together with the reply to MONITOR.
 */
export class MonitorLog {
  readonly lines: MonitorLine[] = [];
  readonly #markers = new Set<string>();
  readonly #replies = new Framer(replyEnd);
  /** Resolves when the log has ended: it was stopped, or the server disconnected it. */
  readonly ended: Promise<void>;
  readonly #opened: Promise<void>;
  #unanswered: number;
  #settled!: { resolve: () => void; reject: (error: Error) => void };

  private constructor(
    private readonly socket: Socket,
    requests: readonly string[][],
    private readonly mark: (marker: string) => Promise<unknown>,
    private readonly onStopped: () => void,
  ) {
    this.#unanswered = requests.length;
    this.ended = new Promise((resolve) => socket.once('close', () => resolve()));
    this.#opened = new Promise((resolve, reject) => (this.#settled = { resolve, reject }));
    socket.on('error', (error) => this.#settled.reject(error));
    socket.on('close', () => this.#settled.reject(new Error('MONITOR was cut off')));
    socket.on('data', (chunk: Buffer) => {
      for (const frame of this.#replies.push(chunk)) this.#read(frame);
    });
    for (const request of requests) socket.write(encodeRequest(request));
  }

  static async open(
    address: { host: string; port: number },
    requests: readonly string[][],
    mark: (marker: string) => Promise<unknown>,
    onStopped: () => void,
  ): Promise<MonitorLog> {
    const log = new MonitorLog(connect(address), requests, mark, onStopped);
    await log.#opened;
    return log;
  }

  /** Waits until everything that was run before this call is in `lines`. */
  async settle(): Promise<readonly MonitorLine[]> {
    const marker = `settle-${randomUUID()}`;
    await this.mark(marker);
    await until(() => this.#markers.has(marker), 'MONITOR has reported every earlier command');
    return this.lines;
  }

  count(command: string): number {
    return this.lines.filter((line) => line.command === command.toUpperCase()).length;
  }

  stop(): void {
    this.socket.destroy();
    this.onStopped();
  }

  #read(frame: Buffer): void {
    if (this.#unanswered > 0) {
      this.#unanswered -= 1;
      if (frame[0] === 0x2d) this.#settled.reject(new Error(`MONITOR was refused: ${frame.toString().trim()}`));
      else if (this.#unanswered === 0) this.#settled.resolve();
      return;
    }
    const [, time, database, source = '', quoted = ''] = LINE.exec(frame.toString('utf8')) ?? [];
    const [word = '', ...args] = [...quoted.matchAll(QUOTED)].map(([, text = '']) => unescape(text));
    if (args[0]?.startsWith('settle-')) this.#markers.add(args[0]);
    else
      this.lines.push({
        time: Number(time) * 1_000,
        command: word.toUpperCase(),
        args,
        source,
        database: Number(database),
      });
  }
}

/** MONITOR escapes every byte that is not printable ASCII. */
function unescape(text: string): string {
  const bytes = text.replace(/\\(x[0-9a-f]{2}|.)/gis, (_, code: string) =>
    code.length > 1 ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : (ESCAPED[code] ?? code),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
