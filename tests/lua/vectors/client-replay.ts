import { createClient, type LockClient } from '../../../src/client.js';
import { LockContext } from '../../../src/core/lock-context.js';
import type { LockError } from '../../../src/errors.js';
import type { Lock } from '../../../src/primitives/lock.js';
import { Published } from '../../support/published.js';
import { admin, testRedisUrl } from '../../support/redis.js';
import { readState, type KeyState } from '../../support/redis-state.js';
import { Comparison, type Deviation } from './comparison.js';
import { Names, Pace, PENDING, type JavaError, type Scenario, type Step } from './recording.js';

/** What each exception of Redisson is with us, where no deviation says otherwise. */
const CODES: Record<string, string> = {
  'java.lang.IllegalMonitorStateException': 'ERR_LOCK_NOT_OWNER',
  'java.lang.InterruptedException': 'ERR_LOCK_ABORTED',
};

/** A waiter that was woken is inside long before. */
const STILL_WAITS_MS = 1_000;

/** Makes the recorded calls on our client. A thread is a LockContext, and its interrupt is an AbortSignal. */
export async function replayCalls(
  scenario: Scenario,
  deviations: readonly Deviation[],
  name: string,
): Promise<string[]> {
  const names = new Names(`${name}:`);
  const { clients: labels, lockWatchdogTimeout } = scenario.settings;
  const options = { url: testRedisUrl(), ...(lockWatchdogTimeout !== undefined && { lockWatchdogTimeout }) };
  const clients = new Map(labels.map((label) => [label, createClient(options)]));
  const published = await Published.on(names.prefix);
  try {
    await Promise.all([...clients.values()].map((client) => client.ready()));
    return await new CallReplay(scenario, deviations, names, published, clients).run();
  } finally {
    await Promise.all([...clients.values()].map((client) => client.close()));
    await published.close();
    const left = await admin().keys(`${names.prefix}*`);
    if (left.length > 0) await admin().del(left);
  }
}

interface Call {
  readonly thread: string;
  readonly abort: AbortController;
  readonly promise: Promise<void>;
  readonly from: number;
  outcome?: { readonly result?: unknown; readonly code?: string };
}

class CallReplay {
  readonly #pace = new Pace();
  readonly #comparison: Comparison;
  readonly #contexts = new Map<string, LockContext>();
  readonly #calls = new Map<number, Call>();
  /** Owner on the wire -> owner as recorded: each outermost hold has a tenure of its own, a thread keeps its id. */
  readonly #roles = new Map<string, string>();

  constructor(
    private readonly scenario: Scenario,
    deviations: readonly Deviation[],
    private readonly names: Names,
    private readonly messages: Published,
    private readonly clients: ReadonlyMap<string, LockClient>,
  ) {
    this.#comparison = new Comparison(scenario, deviations, 'client', this.#pace);
  }

  async run(): Promise<string[]> {
    for (const step of this.scenario.steps) {
      await this.#pace.until(callAt(step));
      await this.#replay(step);
      await this.#pace.until(step.stateAt);
      await this.#compareOutcomes(step);
      const from = this.#pace.now();
      this.#comparison.state(step, await this.#state(), from);
      const messages = await this.messages.take();
      this.#comparison.published(
        step,
        messages.map(({ channel, payload }) => ({ channel: this.names.recorded(channel), payload })),
      );
    }
    return this.#comparison.differences;
  }

  async #replay(step: Step): Promise<void> {
    const { object, method, args } = step.call;
    const [kind = '', ...rest] = object.split(':');
    switch (kind) {
      case 'clock':
        return;
      case 'redis':
        return this.#command(step, args.map(String));
      case 'thread': {
        const call = [...this.#calls.values()].findLast(({ thread }) => thread === rest.join(':'));
        if (method === 'interrupt') call?.abort.abort();
        await call?.promise;
        return;
      }
      case 'lock':
        return this.#call(step, rest.join(':'));
      default:
        this.#comparison.differs(step, 'no such object here');
    }
  }

  async #command(step: Step, [word = '', first = '', ...rest]: string[]): Promise<void> {
    const reply = await admin().call(word, this.names.ours(first), ...rest);
    // Whoever compares the messages listens, too.
    const receivers = word === 'PUBLISH' ? 1 : 0;
    this.#comparison.value(step, `reply of ${word}`, step.result, step.at, Number(reply) - receivers, first, step.at);
  }

  async #call(step: Step, object: string): Promise<void> {
    const { client, thread } = step.actor!;
    const { method, times, of } = signature(step, thread);
    const owner = method === 'isHeldByThread' ? thread : of;
    const lock = this.clients.get(client)!.getLock(this.names.ours(object), { context: this.#context(client, owner) });
    if (this.#comparison.deviation(step).unlocksFirst) await lock.unlock().catch(() => undefined);
    this.#comparison.called(step);
    const abort = new AbortController();
    const asked = this.#context(client, of);
    const call: Call = {
      thread,
      abort,
      from: this.#pace.now(),
      promise: invoke(lock, method, times, abort.signal, asked).then(
        (result) => {
          call.outcome = { result: method === 'getName' ? this.names.recorded(lock.name) : result };
          const hold = lock.currentHold();
          const number = /^\d+$/.test(owner) ? owner : `<${owner}>`;
          if (hold !== undefined) this.#roles.set(hold.owner, `<${client}>:${number}`);
        },
        (error: unknown) => {
          call.outcome = { code: (error as LockError).code };
        },
      ),
    };
    this.#calls.set(step.i, call);
    if (step.result === PENDING) return;
    await call.promise;
    if (method !== 'tryLock') this.#pace.did(callAt(step));
  }

  async #compareOutcomes(step: Step): Promise<void> {
    const key = step.call.object.slice('lock:'.length);
    for (const { step: i, ...recorded } of step.completed ?? []) {
      await Promise.race([this.#calls.get(i)?.promise, new Promise((resume) => setTimeout(resume, STILL_WAITS_MS))]);
      this.#outcome(step, i, recorded, key);
    }
    if (step.actor === null) return;
    if (step.result !== PENDING) this.#outcome(step, step.i, step, key);
    else if (this.#calls.get(step.i)?.outcome !== undefined) this.#comparison.differs(step, 'the call did not wait');
  }

  #outcome(step: Step, i: number, recorded: { result?: unknown; error?: JavaError }, key: string): void {
    const call = this.#calls.get(i);
    if (call?.outcome === undefined) return this.#comparison.differs(step, `the call of step ${i} still waits`);
    const { outcome, from } = call;
    const code =
      this.#comparison.deviation(step).code ??
      (recorded.error && (CODES[recorded.error.class] ?? recorded.error.class));
    this.#comparison.value(step, `error of step ${i}`, code, step.at, outcome.code, key, from);
    if (code !== undefined) return;
    const result = recorded.result === '<void>' ? undefined : recorded.result;
    this.#comparison.value(step, `result of step ${i}`, result, step.at, outcome.result, key, from);
  }

  #context(client: string, thread: string): LockContext {
    const name = `${client}:${thread}`;
    const context = this.#contexts.get(name) ?? new LockContext();
    this.#contexts.set(name, context);
    return context;
  }

  async #state(): Promise<Record<string, KeyState>> {
    const state = await readState(admin(), this.names.prefix);
    return Object.fromEntries(
      Object.entries(state).map(([key, { value, ...rest }]) => {
        const fields = Object.entries(value as Record<string, string>);
        const byRole = fields.map(([owner, count]) => [this.#roles.get(owner) ?? owner, count]);
        return [this.names.recorded(key), { ...rest, value: Object.fromEntries(byRole) as unknown }];
      }),
    );
  }
}

/** Between the call and its first command a JVM takes its time. */
const callAt = (step: Step): number => step.scripts[0]?.at ?? step.commands[0]?.at ?? step.at;

interface Signature {
  /** Without `Async`. */
  readonly method: string;
  /** In front of the unit, which is always ms. */
  readonly times: readonly number[];
  /** The thread that the call is made for, or asks about. */
  readonly of: string;
}

function signature({ call: { method, args } }: Step, thread: string): Signature {
  const unit = args.indexOf('MILLISECONDS');
  const times = unit < 0 ? [] : args.slice(0, unit).map(Number);
  const [named] = args.slice(unit + 1);
  const of = named === undefined ? thread : String(named).replace(/^<(.*)>$/, '$1');
  return { method: method.replace(/Async$/, ''), times, of };
}

async function invoke(
  lock: Lock,
  method: string,
  [first, second]: readonly number[],
  signal: AbortSignal,
  asked: LockContext,
): Promise<unknown> {
  switch (method) {
    case 'lock':
    case 'lockInterruptibly':
      return lock.lock(first, { signal });
    case 'tryLock':
      return lock.tryLock(first, second, { signal });
    case 'unlock':
      return lock.unlock();
    case 'forceUnlock':
      return lock.forceUnlock();
    case 'isLocked':
      return lock.isLocked();
    case 'isHeldByCurrentThread':
      return lock.isHeldByCurrentContext();
    case 'isHeldByThread':
      return lock.isHeldBy(asked);
    case 'getHoldCount':
      return lock.getHoldCount();
    case 'remainTimeToLive':
      return lock.remainTimeToLive();
    case 'getName':
      return lock.name;
    default:
      throw new Error(`no such method here: ${method}`);
  }
}
