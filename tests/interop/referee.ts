import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** `exclusive`: alone; `shared`: with others of its kind; `permit`: with as many as there are permits. */
export type Mode = 'exclusive' | 'shared' | 'permit';

interface Request {
  readonly id: number;
  readonly op: 'enter' | 'read' | 'write' | 'leave';
  readonly name: string;
  readonly mode?: Mode;
  readonly who?: string;
  /** In Redis. */
  readonly owner?: string;
  /** Of a fenced lock; 0: none. */
  readonly token?: number;
  readonly value?: number;
}

interface Section {
  readonly who: string;
  readonly owner: string;
  readonly mode: Mode;
  readonly socket: Socket;
}

/** What the locks of a contest protect, outside of Redis: a plain number, and a list of who is inside. */
export class Referee {
  readonly violations: string[] = [];
  /** Owners in the order in which they entered. */
  readonly entered: string[] = [];
  /** Sections that have been left, by mode. */
  readonly left: Record<Mode, number> = { exclusive: 0, shared: 0, permit: 0 };
  mostInside = 0;
  value = 0;
  readonly #inside: Section[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#serve(socket));
  #lastToken = 0;

  private constructor(private readonly permits: number) {}

  static async start(permits = 1): Promise<Referee> {
    const referee = new Referee(permits);
    referee.#server.listen(0, '127.0.0.1');
    await once(referee.#server, 'listening');
    return referee;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    let rest = '';
    socket.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const request = JSON.parse(line) as Request;
        socket.write(`${JSON.stringify({ id: request.id, value: this.#run(request, socket) })}\n`);
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      for (const { who } of this.#inside.filter((each) => each.socket === socket)) {
        this.violations.push(`${who} went away inside`);
      }
    });
  }

  #run({ op, value = 0, who = '', owner = '', mode = 'exclusive', token = 0 }: Request, socket: Socket): number {
    switch (op) {
      case 'read':
        return this.value;
      case 'write':
        return (this.value = value);
      case 'enter':
        this.#enter({ who, owner, mode, socket }, token);
        return this.#inside.length;
      case 'leave': {
        const at = this.#inside.findIndex((each) => each.who === who && each.socket === socket);
        if (at < 0) this.violations.push(`${who} left without having entered`);
        else this.left[this.#inside.splice(at, 1)[0]!.mode] += 1;
        return this.#inside.length;
      }
    }
  }

  #enter(section: Section, token: number): void {
    const { mode, who } = section;
    const others = this.#inside;
    const tooMany =
      (mode === 'exclusive' && others.length > 0) ||
      (mode === 'shared' && others.some((each) => each.mode !== 'shared')) ||
      (mode === 'permit' && others.length >= this.permits);
    if (tooMany) this.violations.push(`${who} (${mode}) entered beside ${others.map((each) => each.who).join(', ')}`);
    if (token > 0) {
      if (token <= this.#lastToken) this.violations.push(`${who} has token ${token} after ${this.#lastToken}`);
      this.#lastToken = token;
    }
    others.push(section);
    this.mostInside = Math.max(this.mostInside, others.length);
    this.entered.push(section.owner);
  }
}
