import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { LockContext } from '../../../src/ownership/lock-context.js';
import type { LockError } from '../../../src/errors.js';
import { highwayHash128 } from '../../../src/several/group/highway-hash.js';
import { fairQueueKey, fairTimeoutsKey, takenPermitsKey, tokenKey } from '../../../src/redis/keys.js';
import { valueField } from '../../support/lua/group-values.js';
import { answered } from '../../support/clients/lock-clients.js';
import { callLock, LOCKS, type AnyLock } from '../../support/java/java-lock-calls.js';
import { SHARED_CALLS } from '../../support/java/java-shared-calls.js';
import { readState, type KeyState } from '../../support/redis-state.js';
import { Comparison, type Deviation } from './comparison.js';
import { callAt, codeOf, durationMs, signature } from './java-call.js';
import { Names, Pace, PENDING, type JavaError, type Scenario, type Step } from './recording.js';
import { Roles } from './roles.js';
import { openStage, type Messages, type Stage } from './stage.js';

/** The same words in every recording, and their names in the hash: the recorded codec differs from that of Holdfast. */
const VALUES = ['v1', 'v2', 'v3', 'v4'];
const kryo = (text: string): Uint8Array => Uint8Array.of(3, text.charCodeAt(0), text.charCodeAt(1) | 0x80);
const recordedField = (value: string): string => highwayHash128(kryo(value)).toString('base64').slice(0, 22);

/** Background work of a call, such as leaving a queue, ends long before this time. */
const BACKGROUND_MS = 500;

/** A waiter that was woken is inside within this, on a busy machine. */
const WAKE_MS = 200;

/** A waiter that was woken, or that looks once a second, is inside long before. */
const STILL_WAITS_MS = 2_000;

/** Makes the recorded calls on our client. A thread is a LockContext, and its interrupt is an AbortSignal. */
export async function replayCalls(
  scenario: Scenario,
  deviations: readonly Deviation[],
  name: string,
): Promise<string[]> {
  const names = new Names(`${name}:`);
  const { clients: labels, lockWatchdogTimeout, fairLockWaitTimeout } = scenario.settings;
  const stage = await openStage(scenario);
  const options = {
    ...(lockWatchdogTimeout !== undefined && { lockWatchdogTimeout }),
    ...(fairLockWaitTimeout !== undefined && { fairLockWaitTimeout }),
  };
  const clients = new Map(labels.map((label) => [label, createClient({ ...stage.way(label), ...options })]));
  const published = await stage.listen(names.prefix);
  try {
    await Promise.all([...clients.values()].map((client) => client.ready()));
    return await new CallReplay(scenario, deviations, names, stage, published, clients).run();
  } finally {
    await Promise.all([...clients.values()].map((client) => client.close()));
    await published.close();
    const left = await stage.admin.keys(`*${names.prefix}*`);
    for (const key of left) await stage.admin.del(key);
    await stage.close();
  }
}

const codeFrom = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => (error as LockError).code,
  );

interface Call {
  readonly thread: string;
  readonly abort: AbortController;
  readonly promise: Promise<void>;
  readonly from: number;
  outcome?: { result?: unknown; readonly code?: string };
  settledAt?: number;
}

class CallReplay {
  readonly #pace = new Pace();
  readonly #comparison: Comparison;
  readonly #contexts = new Map<string, LockContext>();
  readonly #calls = new Map<number, Call>();
  readonly #roles = new Roles();
  /** Learns the owners of servers that have granted since a majority had. */
  readonly #joining: (() => void)[] = [];

  constructor(
    private readonly scenario: Scenario,
    deviations: readonly Deviation[],
    private readonly names: Names,
    private readonly stage: Stage,
    private readonly messages: Messages,
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
      let from = this.#pace.now();
      let state = await this.#state();
      for (const until = from + BACKGROUND_MS; from < until && !this.#comparison.hasContent(step, state);) {
        from = this.#pace.now();
        state = await this.#state();
        this.#pace.did(step.stateAt, Math.min(this.#pace.now(), step.stateAt + WAKE_MS));
      }
      this.#comparison.state(step, state, from);
      const messages = await this.messages.take();
      this.#comparison.published(
        step,
        messages.map(({ channel, payload }) => ({
          channel: this.#roles.recorded(this.names.recorded(channel)),
          payload,
        })),
      );
    }
    return this.#comparison.differences;
  }

  async #replay(step: Step): Promise<void> {
    const { object, method, args } = step.call;
    const [, joint, members = ''] = /^(multi|red)\((.*)\)$/.exec(object) ?? [];
    if (joint !== undefined) return this.#call(step, joint, members);
    const [kind = '', ...rest] = object.split(':');
    switch (kind) {
      case 'clock':
        return;
      case 'redis':
        return this.#command(step, args.map(String));
      case 'proxy':
        return this.stage.loseReplies(String(args[0]), Number(args[1]));
      case 'client':
        // All were created before the beginning.
        return method === 'shutdown' ? this.clients.get(step.actor!.client)!.close() : undefined;
      case 'thread': {
        const call = [...this.#calls.values()].findLast(({ thread }) => thread === rest.join(':'));
        if (method === 'interrupt') call?.abort.abort();
        await call?.promise;
        return;
      }
      default:
        if (kind in SHARED_CALLS) return this.#shared(step, kind, rest.join(':'));
        if (!(kind in LOCKS)) return this.#comparison.differs(step, 'no such object here');
        return this.#call(step, kind, rest.join(':'));
    }
  }

  async #command(step: Step, [word = '', first = '', ...rest]: string[]): Promise<void> {
    if (word === 'SCRIPT') {
      const status = await this.stage.admin.call(word, first, ...rest);
      return this.#comparison.value(step, `reply of ${word}`, step.result, step.at, { status }, first, step.at);
    }
    const reply = await this.stage.admin.call(word, this.names.ours(first), ...rest);
    // The comparison of messages subscribes, too.
    const receivers = word === 'PUBLISH' ? 1 : 0;
    const ours: unknown = Array.isArray(reply) ? this.#recorded(reply) : Number(reply) - receivers;
    const { result = step.result } = this.#comparison.deviation(step);
    this.#comparison.value(step, `reply of ${word}`, result, step.at, ours, first, step.at);
  }

  async #shared(step: Step, kind: string, object: string): Promise<void> {
    const { client, thread } = step.actor!;
    const { method, args } = step.call;
    const abort = new AbortController();
    this.#comparison.called(step);
    const name = this.names.prefix + object;
    const plain = method.replace(/Async$/, '');
    const given = args.map((arg) => this.#roles.ourPermits(arg)) as (string | number)[];
    const make = async (): Promise<unknown> => {
      const byHand = kind === 'latch' ? undefined : this.#byHand(plain, name, durationMs(args[0]));
      return byHand ?? SHARED_CALLS[kind]!(this.clients.get(client)!, name, plain, given, abort.signal);
    };
    const call: Call = {
      thread,
      abort,
      from: this.#pace.now(),
      promise: make().then(
        (value) => void (call.outcome = { result: value }),
        (error: unknown) => void (call.outcome = { code: (error as LockError).code }),
      ),
    };
    this.#calls.set(step.i, call);
    void call.promise.then(() => (call.settledAt = this.#pace.now()));
    if (step.result === PENDING) await this.#parked(call, client);
    else await call.promise;
  }

  /** Methods that every object of Redisson has and Holdfast does not. Recordings use them to reset or to end. */
  #byHand(method: string, name: string, ms: number | undefined): Promise<boolean> | undefined {
    const { admin } = this.stage;
    const keys = [name, takenPermitsKey(name), tokenKey(name), fairQueueKey(name), fairTimeoutsKey(name)];
    const some = async (replies: Promise<number>[]): Promise<boolean> => (await Promise.all(replies)).includes(1);
    if (method === 'delete') return some(keys.map((key) => admin.del(key)));
    if (method === 'expire') return some([name, ...keys.slice(3)].map((key) => admin.pexpire(key, ms ?? 0)));
    if (method === 'clearExpire') return some(keys.map((key) => admin.persist(key)));
    return undefined;
  }

  async #call(step: Step, kind: string, object: string): Promise<void> {
    const { client, thread } = step.actor!;
    const { method, times, of } = signature(step, thread);
    const owner = method === 'isHeldByThread' ? thread : of;
    const name = this.names.prefix + object.replace(/#shared$/, '');
    const context = this.#context(client, owner);
    let lock: AnyLock;
    try {
      lock =
        kind === 'multi' || kind === 'red'
          ? this.#joint(kind, client, object, context)
          : this.#lock(kind, client, name, context);
    } catch (error) {
      const refused = { thread, abort: new AbortController(), from: this.#pace.now(), promise: Promise.resolve() };
      this.#calls.set(step.i, { ...refused, outcome: { code: (error as LockError).code } });
      return;
    }
    if (this.#comparison.deviation(step).unlocksFirst) {
      while ((await codeFrom(lock.unlock())) === 'ERR_LOCK_LOST');
    }
    this.#comparison.called(step);
    const abort = new AbortController();
    const asked = this.#context(client, of);
    const call: Call = {
      thread,
      abort,
      from: this.#pace.now(),
      promise: (this.#byHand(method, name, times[0]) ?? callLock(lock, method, times, abort.signal, asked)).then(
        (result) => {
          call.outcome = { result: method === 'getName' ? this.names.recorded(lock.name) : result };
          const hold = lock.currentHold();
          const learn = (): void => {
            for (const each of hold?.owner.split(', ') ?? []) {
              const [label] = [...this.clients].find(([, { id }]) => each.startsWith(id)) ?? [client];
              this.#roles.plays(each, Roles.of(label, owner));
            }
          };
          learn();
          if (kind === 'red') this.#joining.push(learn);
        },
        (error: unknown) => {
          call.outcome = { code: (error as LockError).code };
        },
      ),
    };
    this.#calls.set(step.i, call);
    void call.promise.then(() => (call.settledAt = this.#pace.now()));
    if (step.result === PENDING) {
      this.#roles.queues(Roles.of(client, owner));
      if (kind !== 'spin') await this.#parked(call, client);
      return;
    }
    await call.promise;
    if (method !== 'tryLock') this.#pace.did(callAt(step));
  }

  /** Waits until a waiting call is subscribed and has tried again, so that the next step finds the recorded state. */
  async #parked(call: Call, client: string): Promise<void> {
    const of = `*${this.names.prefix}*`;
    const channels = async (kind: 'CHANNELS' | 'SHARDCHANNELS'): Promise<unknown[]> =>
      (await this.stage.admin.call('PUBSUB', kind, of).catch(() => [])) as unknown[];
    const listens = async (): Promise<boolean> =>
      (await Promise.all([channels('CHANNELS'), channels('SHARDCHANNELS')])).flat().length > 0;
    const limit = performance.now() + BACKGROUND_MS;
    while (call.outcome === undefined && !(await listens()) && performance.now() < limit);
    await answered(this.clients.get(client)!);
  }

  /** Of a group the name has the values, too: `g(v1,v2)`. */
  #lock(kind: string, client: string, name: string, context: LockContext): AnyLock {
    const [, group = name, values = ''] = (kind === 'group' && /^(.*)\((.*)\)$/.exec(name)) || [];
    return LOCKS[kind]!(this.clients.get(client)!, group, context, values.split(','));
  }

  /** `lock:l1,lock:l2`, each possibly at a separate client: `lock:l1@A`. */
  #joint(kind: 'multi' | 'red', client: string, members: string, context: LockContext): AnyLock {
    const locks = members.split(',').map((member) => {
      const [, name = '', at = client] = /^lock:([^@]*)(?:@(.*))?$/.exec(member) ?? [];
      return this.clients.get(at)!.getLock(this.names.prefix + name);
    });
    const first = this.clients.get(client)!;
    return kind === 'multi' ? first.getMultiLock(...locks, { context }) : first.getRedLock(...locks, { context });
  }

  async #compareOutcomes(step: Step): Promise<void> {
    const key = step.call.object.slice(step.call.object.indexOf(':') + 1);
    const { completed = step.completed, ...own } = this.#comparison.deviation(step);
    for (const { step: i, ...recorded } of completed ?? []) {
      if (this.#comparison.deviation({ i }).doesNotWait) continue;
      const call = this.#calls.get(i);
      await Promise.race([call?.promise, new Promise((resume) => setTimeout(resume, STILL_WAITS_MS))]);
      if (call?.settledAt !== undefined) this.#pace.did(callAt(step), Math.min(call.settledAt, callAt(step) + WAKE_MS));
      this.#outcome(step, i, recorded, completed === step.completed ? own : {}, key);
    }
    if (step.actor === null || step.call.object === 'client') return;
    if (step.result !== PENDING) this.#outcome(step, step.i, step, own, key);
    else if (
      (this.#calls.get(step.i)?.outcome !== undefined) !==
      (this.#comparison.deviation(step).doesNotWait ?? false)
    )
      this.#comparison.differs(step, 'the call does not wait when it should');
  }

  #outcome(
    step: Step,
    i: number,
    recorded: { result?: unknown; error?: JavaError },
    own: Pick<Deviation, 'code' | 'result'>,
    key: string,
  ): void {
    const call = this.#calls.get(i);
    if (call?.outcome === undefined) return this.#comparison.differs(step, `the call of step ${i} still waits`);
    const { outcome, from } = call;
    const code = (own.code ?? (!('result' in own) && recorded.error && codeOf(recorded.error))) || undefined;
    this.#comparison.value(step, `error of step ${i}`, code, step.at, outcome.code, key, from);
    if (code !== undefined) return;
    const result = 'result' in own ? own.result : recorded.result === '<void>' ? undefined : recorded.result;
    if (typeof outcome.result === 'string') outcome.result = this.names.recorded(outcome.result);
    this.#roles.learnPermits(result, outcome.result);
    outcome.result = this.#roles.recordedPermits(outcome.result);
    this.#comparison.value(step, `result of step ${i}`, result, step.at, outcome.result, key, from);
  }

  #context(client: string, thread: string): LockContext {
    const name = `${client}:${thread}`;
    const context = this.#contexts.get(name) ?? new LockContext();
    this.#contexts.set(name, context);
    return context;
  }

  /** With the recorded names of owners and values. */
  #recorded(ours: unknown): unknown {
    let text = this.#roles.recorded(JSON.stringify(ours));
    for (const value of VALUES) text = text.replaceAll(valueField(value), recordedField(value));
    return JSON.parse(text);
  }

  async #state(): Promise<Record<string, KeyState>> {
    for (const learn of this.#joining) learn();
    const state = Object.entries(await readState(this.stage.admin)).filter(
      ([key]) => key.includes(this.names.prefix) && !key.startsWith('holdfast_'),
    );
    for (const [key, { value }] of state) {
      if (!key.startsWith('redisson_lock_queue:')) continue;
      this.#roles.seenInQueue(value as string[]);
    }
    const recorded = this.#recorded(state.map(([key, value]) => [this.names.recorded(key), value]));
    return Object.fromEntries(recorded as [string, KeyState][]);
  }
}
