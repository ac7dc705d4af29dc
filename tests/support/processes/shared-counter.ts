import type { Socket } from 'node:net';
import { CounterClient, type CounterRequest } from './counter-client.mjs';
import { LineServer } from './line-server.js';

export interface Overlap {
  readonly name: string;
  readonly who: string;
  /** The flows that were inside when it came. */
  readonly inside: readonly string[];
}

interface Counter {
  value: number;
  sections: number;
  mostHolders: number;
  readonly inside: { who: string; socket: Socket }[];
}

/**
 * The state that a lock protects in the tests: numbers that several processes read, process and write back, and a list
 * of the flows inside. If two flows are inside at the same time, the list shows it, and usually an update is lost as
 * well.
 */
export class SharedCounter {
  readonly overlaps: Overlap[] = [];
  readonly #counters = new Map<string, Counter>();
  readonly #server = new LineServer<CounterRequest>(
    (request, socket) => this.#run(request, socket),
    (socket) => {
      // Dead processes are not inside.
      for (const counter of this.#counters.values()) {
        for (const each of counter.inside.filter((one) => one.socket === socket)) remove(counter, each);
      }
    },
  );

  static async start(): Promise<SharedCounter> {
    const counter = new SharedCounter();
    await counter.#server.listen();
    return counter;
  }

  get port(): number {
    return this.#server.port;
  }

  /** For sections of this process; the workers open their own. */
  open(): Promise<CounterClient> {
    return CounterClient.open(this.port);
  }

  value(name: string): number {
    return this.#counter(name).value;
  }

  /** Number of completed sections. It equals the value unless an update was lost or a process died inside. */
  sections(name: string): number {
    return this.#counter(name).sections;
  }

  mostHolders(name: string): number {
    return this.#counter(name).mostHolders;
  }

  holders(name: string): string[] {
    return this.#counter(name).inside.map(({ who }) => who);
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #run({ op, name, value = 0, who = '' }: CounterRequest, socket: Socket): number {
    const counter = this.#counter(name);
    switch (op) {
      case 'read':
        return counter.value;
      case 'write':
        return (counter.value = value);
      case 'enter':
        if (counter.inside.length > 0) this.overlaps.push({ name, who, inside: this.holders(name) });
        counter.inside.push({ who, socket });
        counter.mostHolders = Math.max(counter.mostHolders, counter.inside.length);
        return counter.inside.length;
      case 'leave': {
        const each = counter.inside.find((one) => one.who === who && one.socket === socket);
        if (each) {
          remove(counter, each);
          counter.sections += 1;
        }
        return counter.inside.length;
      }
    }
  }

  #counter(name: string): Counter {
    let counter = this.#counters.get(name);
    if (!counter) this.#counters.set(name, (counter = { value: 0, sections: 0, mostHolders: 0, inside: [] }));
    return counter;
  }
}

function remove(counter: Counter, each: Counter['inside'][number]): void {
  counter.inside.splice(counter.inside.indexOf(each), 1);
}
