// @ts-check
import { createClient, LockContext } from 'holdfast';
import { Cluster, Redis } from 'ioredis';
import { CounterClient } from './counter-client.mjs';
import { HistoryRecorder, stamp } from '../history/history-recorder.mjs';
import { described, isHold, sendable } from './sendable.mjs';
import { reach } from '../servers/topology.mjs';
import { fallAsleep, setWallClock } from './worker-clock.mjs';
import { contend } from './worker-load.mjs';

/**
 * A process with the built package that executes the orders of its parent (child.ts).
 *
 * @typedef {import('holdfast').Hold} Hold
 * @typedef {import('holdfast').LockClient} LockClient
 * @typedef {import('./worker-orders.js').LockSpec} LockSpec
 * @typedef {import('./worker-orders.js').Order} Order
 * @typedef {import('./worker-orders.js').Step} Step
 * @typedef {import('./worker-orders.js').HoldInfo} HoldInfo
 * @typedef {{ readonly id: number } & Order} Message
 * @typedef {Record<string, (...args: unknown[]) => unknown>} Methods
 * @typedef {{ readonly id: string, readonly hold: Hold, readonly bare: boolean, open: boolean }} Entered
 */

/** @type {Map<string, LockClient>} */
const clients = new Map();
/** @type {Map<string, LockContext>} */
const contexts = new Map();
/** @type {Map<string, AbortController>} */
const controllers = new Map();
/** @type {Map<string, Entered>} */
const holds = new Map();
/** @type {Map<string, Flow>} */
const flows = new Map();
/** @type {Map<number, Promise<CounterClient>>} */
const counters = new Map();
const stopping = new AbortController();
const [name = String(process.pid), historyFile] = process.argv.slice(2);
const recorder = historyFile ? new HistoryRecorder(name, historyFile) : undefined;

const ACQUIRING = new Set(['lock', 'tryLock', 'acquire', 'tryAcquire']);

/** @param {string} type @param {unknown} detail */
const tell = (type, detail) => void process.send?.({ event: { type, detail, at: stamp() } });
/** @param {number} id @param {unknown} value */
const answer = (id, value) => void process.send?.({ id, value });
/** @param {number} id @param {unknown} error */
const fail = (id, error) => void process.send?.({ id, error: described(error) });

/** A separate flow: its steps run one after the other in one async function, so that its holds belong to it. */
class Flow {
  /** @type {{ id: number, step: Step }[]} */
  #steps = [];
  /** @type {(() => void) | undefined} */
  #wake;
  /** Holds that the flow is inside of, outermost first. @type {Entered[]} */
  entered;

  /** @param {LockClient} client @param {readonly Entered[]} entered */
  constructor(client, entered) {
    this.client = client;
    this.entered = [...entered];
  }

  /** @param {number} id @param {Step} step */
  push(id, step) {
    this.#steps.push({ id, step });
    this.#wake?.();
  }

  async next() {
    for (;;) {
      const next = this.#steps.shift();
      if (next !== undefined) return next;
      await new Promise((/** @type {(value?: undefined) => void} */ resolve) => (this.#wake = resolve));
    }
  }

  /** Does its steps until one of them ends the body it is in, and returns that. */
  async follow() {
    for (;;) {
      const { id, step } = await this.next();
      if (step.op === 'leave') return { id, step };
      try {
        // Not in a separate function, which would keep the holds that it awaits.
        switch (step.op) {
          case 'call': {
            const lock = lockOf(this.client, step.lock);
            const args = step.args.map(received);
            const noted = this.#noted(lock, step.method);
            try {
              const value = await lock[step.method]?.(...args);
              answer(id, { value: sendable(value), hold: noted?.done(value) });
            } catch (error) {
              noted?.failed(error);
              throw error;
            }
            break;
          }
          case 'enter':
            await this.#enter(id, step);
            break;
          case 'run': {
            const entered = heldAs(step.hold);
            answer(id, infoOf(entered));
            const left = await entered.hold.run(() => this.#inside(entered));
            answer(left.id, undefined);
            break;
          }
          case 'release': {
            const entered = heldAs(step.hold);
            entered.open = false;
            const release = () => entered.hold.release();
            try {
              await (recorder ? recorder.recordRelease(entered.hold, release) : release());
              recorder?.released(entered.hold);
            } catch (error) {
              recorder?.released(entered.hold, error);
              throw error;
            }
            answer(id, undefined);
            break;
          }
          case 'extend':
            await heldAs(step.hold).hold.extend(step.leaseTime);
            recorder?.confirm(heldAs(step.hold).hold.owner);
            answer(id, undefined);
            break;
          case 'fork': {
            const child = new Flow(this.client, this.entered);
            flows.set(step.flow, child);
            void child.follow();
            answer(id, undefined);
            break;
          }
          case 'section': {
            const counter = await counterAt(step.port);
            const { workMs } = step;
            await counter.section(step.name, step.who, workMs === undefined ? undefined : () => pause(workMs));
            answer(id, undefined);
          }
        }
      } catch (error) {
        fail(id, error);
      }
    }
  }

  /** @param {number} id @param {Extract<Step, { op: 'enter' }>} step */
  async #enter(id, step) {
    const lock = lockOf(this.client, step.lock);
    const noted = this.#noted(lock, 'acquire');
    /** @type {Awaited<ReturnType<Flow['follow']>> | undefined} */
    let left;
    /** @type {Entered | undefined} */
    let entered;
    try {
      await lock.withLock?.(received(step.options), async (/** @type {Hold} */ hold) => {
        const info = noted?.done(hold);
        entered = info && heldAs(info.hold);
        recorder?.watchRelease(hold);
        answer(id, info);
        left = await this.#inside(entered);
        if (entered) entered.open = false;
        if (left.step.fails !== undefined) throw new Error(left.step.fails);
      });
      if (entered) recorder?.released(entered.hold);
      if (left) answer(left.id, undefined);
    } catch (error) {
      if (left === undefined) noted?.failed(error);
      else if (entered) recorder?.released(entered.hold, left.step.fails === undefined ? error : undefined);
      fail((left ?? { id }).id, error);
    }
  }

  /** @param {Entered | undefined} entered */
  async #inside(entered) {
    const outside = this.entered;
    this.entered = entered ? [...outside.filter((each) => each !== entered), entered] : outside;
    try {
      const left = await this.follow();
      return { id: left.id, step: /** @type {Extract<Step, { op: 'leave' }>} */ (left.step) };
    } finally {
      this.entered = outside;
    }
  }

  /**
   * Writes the call down, and gives the hold that it leads to a name.
   *
   * @param {Methods} lock @param {string} method
   */
  #noted(lock, method) {
    if (method === 'unlock') return this.#notedUnlock(String(lock.name));
    if (!ACQUIRING.has(method) || lock.currentHold === undefined) return undefined;
    const lockName = String(lock.name);
    const parent = this.#innermost(lockName, () => true);
    const call = recorder?.invoked(lockName);
    return {
      /** @param {unknown} value */
      done: (value) => {
        const hold = isHold(value) ? value : method === 'lock' || value === true ? lock.currentHold?.() : undefined;
        if (!isHold(hold)) {
          if (call !== undefined) recorder?.refused(call, 'busy');
          return undefined;
        }
        const entered = { id: `${name}/h${holds.size + 1}`, hold, bare: !isHold(value), open: true };
        holds.set(entered.id, entered);
        this.entered = [...this.entered.filter(({ open }) => open), entered];
        if (call !== undefined) recorder?.granted(call, hold, { parent: parent?.hold });
        const { signal } = hold;
        signal.addEventListener('abort', () => tell('signal', { hold: entered.id, cause: described(signal.reason) }));
        return infoOf(entered);
      },
      /** @param {unknown} error */
      failed: (error) => {
        if (call !== undefined) recorder?.refused(call, error);
      },
    };
  }

  /** @param {string} lockName */
  #notedUnlock(lockName) {
    const entered = this.#innermost(lockName, ({ bare }) => bare);
    if (entered === undefined) return undefined;
    recorder?.releasing(entered.hold);
    const over = (/** @type {unknown} */ error) => {
      recorder?.released(entered.hold, error);
      entered.open = false;
    };
    return {
      done: () => {
        over(undefined);
        return undefined;
      },
      failed: over,
    };
  }

  /** @param {string} lockName @param {(entered: Entered) => boolean} wanted */
  #innermost(lockName, wanted) {
    return this.entered.findLast((each) => each.open && each.hold.lockName === lockName && wanted(each));
  }
}

/** @param {import('./worker-orders.js').WorkerClientOptions['redisOptions']} options */
const connectionOf = (options) => new Redis({ ...options, lazyConnect: true });

/** @param {NonNullable<import('./worker-orders.js').WorkerClientOptions['cluster']>} cluster */
const clusterOf = ({ nodes, natMap }) =>
  new Cluster(nodes, { lazyConnect: true, natMap, redisOptions: { replyMapping: 'legacy' } });

/** @param {Message} message */
async function obey(message) {
  switch (message.do) {
    case 'createClient': {
      const { redisOptions, cluster, url, ...options } = message.options;
      const given =
        url === undefined ? { redis: cluster ? clusterOf(cluster) : connectionOf(redisOptions) } : reach(url);
      const client = createClient({ ...given, ...options });
      clients.set(message.client, client);
      for (const type of message.events) client.events.on(type, (event) => tell(type, sendable(event)));
      client.events.on('renewed', ({ owner }) => recorder?.confirm(owner));
      return client.id;
    }
    case 'closeClient':
      return clientNamed(message.client).close(message.options);
    case 'step': {
      let flow = flows.get(message.flow);
      if (flow === undefined) {
        flow = new Flow(clientNamed(message.client), []);
        flows.set(message.flow, flow);
        void flow.follow();
      }
      flow.push(message.id, message.step);
      return undefined;
    }
    case 'hold':
      return infoOf(heldAs(message.hold));
    case 'abort':
      return controllerNamed(message.signal).abort(message.reason);
    case 'block': {
      const from = stamp();
      while (stamp() < from + message.ms);
      return { from, until: stamp() };
    }
    case 'setClock':
      setWallClock(message.ms);
      recorder?.confirm();
      return undefined;
    case 'sleep': {
      const moved = fallAsleep();
      recorder?.confirm();
      return moved;
    }
    case 'contend': {
      const client = clientNamed(message.client);
      const locks = message.locks.map(
        (spec) => /** @type {import('holdfast').Lock} */ (/** @type {unknown} */ (lockOf(client, spec))),
      );
      const counter = await counterAt(message.port);
      return contend({ ...message, who: name, locks, counter, recorder, stopping: stopping.signal });
    }
    case 'run': {
      /** @type {{ run(parts: import('./worker-orders.js').WorkerParts, options: unknown): Promise<unknown> }} */
      const load = await import(message.module);
      return load.run({ name, clients, recorder, stopping: stopping.signal }, message.options);
    }
    case 'stopContending':
      return stopping.abort();
    case 'resources':
      globalThis.gc?.();
      return { heapUsed: process.memoryUsage().heapUsed, active: process.getActiveResourcesInfo() };
    case 'exit':
      for (const client of clients.values()) await client.close().catch(() => undefined);
      recorder?.close();
      for (const counter of counters.values()) (await counter).close();
      return undefined;
  }
}

process.on('message', (/** @type {Message} */ message) => {
  obey(message).then(
    (value) => {
      if (message.do !== 'step') answer(message.id, value);
      if (message.do === 'exit') process.disconnect();
    },
    (/** @type {unknown} */ error) => fail(message.id, error),
  );
});
process.on('disconnect', () => process.exit());
process.on('unhandledRejection', (reason) => tell('unhandledRejection', described(reason)));
process.on('warning', (warning) => tell('warning', { ...described(warning), stack: warning.stack }));
tell('started', undefined);

/**
 * @param {LockClient} client
 * @param {LockSpec} spec
 * @returns {Methods}
 */
function lockOf(client, spec) {
  const {
    factory = 'getLock',
    name: lockName,
    half,
    values,
    members,
    context,
  } = typeof spec === 'string' ? { name: spec } : spec;
  const factories = /** @type {Methods} */ (/** @type {unknown} */ (client));
  const given = members ? members.map((member) => lockOf(client, member)) : [lockName, ...(values ? [values] : [])];
  const options = context === undefined ? [] : [{ context: contextNamed(context) }];
  const made = /** @type {Methods} */ (factories[factory]?.(...given, ...options));
  return half === undefined ? made : /** @type {Methods} */ (made[half]?.());
}

/** Sends the name of a value that cannot be sent. @param {unknown} argument */
function received(argument) {
  if (typeof argument !== 'object' || argument === null) return argument;
  const options = /** @type {Record<string, unknown>} */ ({ ...argument });
  if (typeof options.signal === 'string') options.signal = controllerNamed(options.signal).signal;
  if (typeof options.context === 'string') options.context = contextNamed(options.context);
  return options;
}

/** @param {Entered} entered @returns {HoldInfo} */
function infoOf({ id, hold }) {
  const { lockName, owner, signal } = hold;
  return { hold: id, lockName, owner, validFor: hold.validFor(), lost: signal.aborted };
}

/** @param {string} id */
function heldAs(id) {
  const entered = holds.get(id);
  if (entered === undefined) throw new Error(`no hold ${id}`);
  return entered;
}

/** @param {string} client */
function clientNamed(client) {
  const found = clients.get(client);
  if (found === undefined) throw new Error(`no client ${client}`);
  return found;
}

/** @param {string} context */
function contextNamed(context) {
  return contexts.get(context) ?? made(contexts, context, new LockContext());
}

/** @param {string} signal */
function controllerNamed(signal) {
  return controllers.get(signal) ?? made(controllers, signal, new AbortController());
}

/** @param {number} port */
function counterAt(port) {
  return counters.get(port) ?? made(counters, port, CounterClient.open(port));
}

/** @template K, V @param {Map<K, V>} map @param {K} key @param {V} value */
function made(map, key, value) {
  map.set(key, value);
  return value;
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
