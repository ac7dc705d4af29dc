import type { Socket } from 'node:net';
import { LineServer } from '../processes/line-server.js';

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

/** The state that the locks of a contest protect, outside of Redis: a number, and a list of the owners inside. */
export class Referee {
  readonly violations: string[] = [];
  /** Owners in the order in which they entered. */
  readonly entered: string[] = [];
  /** Sections that have been left, by mode. */
  readonly left: Record<Mode, number> = { exclusive: 0, shared: 0, permit: 0 };
  mostInside = 0;
  value = 0;
  readonly #inside: Section[] = [];
  readonly #server = new LineServer<Request>(
    (request, socket) => this.#run(request, socket),
    (socket) => {
      for (const { who } of this.#inside.filter((each) => each.socket === socket)) {
        this.violations.push(`${who} left while inside`);
      }
    },
  );
  #lastToken = 0;

  private constructor(private readonly permits: number) {}

  static async start(permits = 1): Promise<Referee> {
    const referee = new Referee(permits);
    await referee.#server.listen();
    return referee;
  }

  get port(): number {
    return this.#server.port;
  }

  close(): Promise<void> {
    return this.#server.close();
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
