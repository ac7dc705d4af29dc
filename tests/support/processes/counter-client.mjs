// @ts-check
import { once } from 'node:events';
import { connect } from 'node:net';

/**
 * @typedef {{ id: number, op: 'read' | 'write' | 'enter' | 'leave', name: string, value?: number, who?: string }}
 *   CounterRequest
 * @typedef {{ id: number, value: number }} CounterReply
 */

/** The other end of a SharedCounter: reads and writes it, which is two requests and nothing atomic. */
export class CounterClient {
  /** @type {import('node:net').Socket} */
  #socket;
  /** @type {Map<number, { resolve: (value: number) => void, reject: (error: Error) => void }>} */
  #unanswered = new Map();
  #requests = 0;
  #rest = '';

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      const lines = (this.#rest + chunk.toString()).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) {
        /** @type {CounterReply} */
        const { id, value } = JSON.parse(line);
        this.#unanswered.get(id)?.resolve(value);
        this.#unanswered.delete(id);
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      for (const { reject } of this.#unanswered.values()) reject(new Error('the shared counter has gone'));
      this.#unanswered.clear();
    });
  }

  /** @param {number} port */
  static async open(port) {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new CounterClient(socket);
  }

  /** @param {string} name */
  read(name) {
    return this.#request({ op: 'read', name });
  }

  /** @param {string} name @param {number} value */
  write(name, value) {
    return this.#request({ op: 'write', name, value });
  }

  /**
   * Returns the number of flows inside, including this one.
   *
   * @param {string} name @param {string} who
   */
  enter(name, who) {
    return this.#request({ op: 'enter', name, who });
  }

  /** @param {string} name @param {string} who */
  leave(name, who) {
    return this.#request({ op: 'leave', name, who });
  }

  /**
   * Runs one section. Another section at the same time shows as an overlap or as a lost update.
   *
   * @param {string} name
   * @param {string} who
   * @param {() => unknown} [work]
   */
  async section(name, who, work) {
    await this.enter(name, who);
    const seen = await this.read(name);
    await work?.();
    await this.write(name, seen + 1);
    await this.leave(name, who);
  }

  close() {
    this.#socket.destroy();
  }

  /**
   * @param {Omit<CounterRequest, 'id'>} request
   * @returns {Promise<number>}
   */
  #request(request) {
    const id = ++this.#requests;
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the shared counter has gone'));
      this.#unanswered.set(id, { resolve, reject });
      this.#socket.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }
}
