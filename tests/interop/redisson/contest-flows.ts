import { lockContext, type Hold, type Lock, type LockClient } from 'holdfast';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { WorkerParts } from '../../support/processes/worker-orders.js';
import type { Mode } from '../../support/java/referee.js';

export interface ContestOptions {
  readonly kind: string;
  readonly name: string;
  readonly flows: number;
  /** Of each flow. */
  readonly sections: number;
  readonly port: number;
}

export interface ContestResult {
  readonly sections: number;
  readonly longestWaitMs: number;
  readonly errors: readonly string[];
}

const PATIENCE_MS = 120_000;
const LEASE_MS = 60_000;

/** The Holdfast half of a mixed contest: the same as Contest.java, with a flow for each thread. */
export async function run({ name: who, clients }: WorkerParts, given: unknown): Promise<ContestResult> {
  const options = given as ContestOptions;
  const contest = new Contest(clients.get('client')!, options);
  const flows = Array.from({ length: options.flows }, (_, flow) =>
    lockContext.run(() => contest.flow(`${who}#${flow}`)),
  );
  await Promise.all(flows);
  return { sections: contest.sections, longestWaitMs: contest.longestWaitMs, errors: contest.errors };
}

class Contest {
  sections = 0;
  longestWaitMs = 0;
  readonly errors: string[] = [];

  constructor(
    private readonly client: LockClient,
    private readonly options: ContestOptions,
  ) {}

  async flow(who: string): Promise<void> {
    const counter = await Counter.open(this.options.port);
    try {
      for (let section = 0; section < this.options.sections; section += 1) {
        await this.#section(counter, who, section);
        this.sections += 1;
      }
    } catch (error) {
      this.errors.push(`${who}: ${String(error)}`);
    } finally {
      counter.close();
    }
  }

  async #section(counter: Counter, who: string, section: number): Promise<void> {
    const { kind, name } = this.options;
    const { client } = this;
    const asked = performance.now();
    switch (kind) {
      case 'semaphore': {
        const semaphore = client.getSemaphore(name);
        if (section % 2 === 0) await semaphore.acquire();
        else sure(await semaphore.tryAcquire(1, PATIENCE_MS));
        this.#waited(asked);
        await inside(counter, 'permit', who, '', 0);
        return semaphore.release();
      }
      case 'expirable': {
        const semaphore = client.getPermitExpirableSemaphore(name);
        const id =
          section % 2 === 0 ? await semaphore.acquire(LEASE_MS) : await semaphore.tryAcquire(PATIENCE_MS, LEASE_MS);
        sure(id !== null);
        this.#waited(asked);
        await inside(counter, 'permit', who, id!, 0);
        return semaphore.release(id!);
      }
      case 'fenced': {
        const hold = await client.getFencedLock(name).acquire({ waitTime: PATIENCE_MS });
        this.#waited(asked);
        await inside(counter, 'exclusive', who, hold.owner, Number(hold.token));
        return hold.release();
      }
      case 'read-write': {
        const { readLock, writeLock } = halves(client, name);
        const writes = section % 4 === 0;
        return this.#within(writes ? writeLock : readLock, counter, writes ? 'exclusive' : 'shared', who, section);
      }
      default:
        return this.#within(lockOf(client, kind, name), counter, 'exclusive', who, section);
    }
  }

  /** By turns without and with a lease, with and without a limit, as the threads do. */
  async #within(lock: Lock, counter: Counter, mode: Mode, who: string, section: number): Promise<void> {
    const asked = performance.now();
    if (section % 3 === 0) await lock.lock();
    else if (section % 3 === 1) await lock.lock(LEASE_MS);
    else sure(await lock.tryLock(PATIENCE_MS, LEASE_MS));
    this.#waited(asked);
    try {
      const owner = (lock.currentHold() as Hold).owner;
      const work = (): Promise<void> => inside(counter, mode, who, owner, 0);
      await (section % 8 === 5 ? lock.withLock(work) : work());
    } finally {
      await lock.unlock();
    }
  }

  #waited(since: number): void {
    this.longestWaitMs = Math.max(this.longestWaitMs, performance.now() - since);
  }
}

function lockOf(client: LockClient, kind: string, name: string): Lock {
  switch (kind) {
    case 'lock':
      return client.getLock(name);
    case 'fair':
      return client.getFairLock(name);
    default:
      throw new Error(`no such kind: ${kind}`);
  }
}

function halves(client: LockClient, name: string): { readLock: Lock; writeLock: Lock } {
  const both = client.getReadWriteLock(name);
  return { readLock: both.readLock(), writeLock: both.writeLock() };
}

async function inside(counter: Counter, mode: Mode, who: string, owner: string, token: number): Promise<void> {
  await counter.ask({ op: 'enter', mode, who, owner, token });
  const seen = await counter.ask({ op: 'read' });
  if (mode === 'exclusive') await counter.ask({ op: 'write', value: seen + 1 });
  else if (mode === 'shared') sure((await counter.ask({ op: 'read' })) === seen);
  await counter.ask({ op: 'leave', who });
}

function sure(fact: boolean): void {
  if (!fact) throw new Error('not granted, or written while it was read');
}

/** The other end of a Referee, for one flow: one question at a time. */
class Counter {
  #answered: ((value: number) => void) | undefined;
  #rest = '';
  #questions = 0;

  private constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      const lines = (this.#rest + chunk.toString()).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#answered?.((JSON.parse(line) as { value: number }).value);
    });
  }

  static async open(port: number): Promise<Counter> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Counter(socket);
  }

  ask(request: Record<string, unknown>): Promise<number> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.socket.write(`${JSON.stringify({ id: ++this.#questions, name: 'contest', ...request })}\n`);
    });
  }

  close(): void {
    this.socket.destroy();
  }
}
