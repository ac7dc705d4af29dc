import { createClient, type LockClient } from '../../../src/client.js';
import { LockContext } from '../../../src/core/lock-context.js';
import type { LockError } from '../../../src/errors.js';
import { highwayHash128 } from '../../../src/primitives/highway-hash.js';
import { takenPermitsKey } from '../../../src/redis/keys.js';
import { valueField } from '../../support/group-values.js';
import { callLock, LOCKS, type AnyLock } from '../../support/java-lock-calls.js';
import { SHARED_CALLS } from '../../support/java-shared-calls.js';
import { Published } from '../../support/published.js';
import { admin, testRedisUrl } from '../../support/redis.js';
import { readState, type KeyState } from '../../support/redis-state.js';
import { Comparison, type Deviation } from './comparison.js';
import { Names, Pace, PENDING, type JavaError, type Scenario, type Step } from './recording.js';

/** What each exception of Redisson is with us, where no deviation says otherwise. */
const CODES: Record<string, string> = {
  'java.lang.IllegalMonitorStateException': 'ERR_LOCK_NOT_OWNER',
  'java.lang.InterruptedException': 'ERR_LOCK_ABORTED',
  'java.lang.IllegalArgumentException': 'ERR_LOCK_INVALID_ARGUMENT',
};

function codeOf({ class: name, message, cause }: JavaError): string {
  if (message?.includes('already been released')) return 'ERR_LOCK_UNKNOWN_PERMIT';
  return cause === undefined ? (CODES[message ?? ''] ?? CODES[name] ?? name) : codeOf(cause);
}

const isPermit = (value: unknown): value is string => typeof value === 'string' && /^<id\d+>$/.test(value);

/** The same words in every recording, and their names in the hash: Redisson's codec there was not ours. */
const VALUES = ['v1', 'v2', 'v3', 'v4'];
const kryo = (text: string): Uint8Array => Uint8Array.of(3, text.charCodeAt(0), text.charCodeAt(1) | 0x80);
const recordedField = (value: string): string => highwayHash128(kryo(value)).toString('base64').slice(0, 22);

/** An owner that is no name of the recording. */
const OURS = /^[\da-f-]{36}:\d+$/;
const roleOf = (thread: string): string => (/^\d+$/.test(thread) ? thread : `<${thread}>`);

/** A waiter that was woken is inside long before. */
const STILL_WAITS_MS = 1_000;

/** Makes the recorded calls on our client. A thread is a LockContext, and its interrupt is an AbortSignal. */
export async function replayCalls(
  scenario: Scenario,
  deviations: readonly Deviation[],
  name: string,
): Promise<string[]> {
  const names = new Names(`${name}:`);
  const { clients: labels, lockWatchdogTimeout, fairLockWaitTimeout } = scenario.settings;
  const options = {
    url: testRedisUrl(),
    ...(lockWatchdogTimeout !== undefined && { lockWatchdogTimeout }),
    ...(fairLockWaitTimeout !== undefined && { fairLockWaitTimeout }),
  };
  const clients = new Map(labels.map((label) => [label, createClient(options)]));
  const published = await Published.on(names.prefix);
  try {
    await Promise.all([...clients.values()].map((client) => client.ready()));
    return await new CallReplay(scenario, deviations, names, published, clients).run();
  } finally {
    await Promise.all([...clients.values()].map((client) => client.close()));
    await published.close();
    const left = await admin().keys(`*${names.prefix}*`);
    if (left.length > 0) await admin().del(left);
  }
}

interface Call {
  readonly thread: string;
  readonly abort: AbortController;
  readonly promise: Promise<void>;
  readonly from: number;
  outcome?: { result?: unknown; readonly code?: string };
}

class CallReplay {
  readonly #pace = new Pace();
  readonly #comparison: Comparison;
  readonly #contexts = new Map<string, LockContext>();
  readonly #calls = new Map<number, Call>();
  /** Owner or permit on the wire -> as recorded: each outermost hold has a tenure of its own, a thread keeps its id. */
  readonly #roles = new Map<string, string>();
  /** Learns the owners of servers that have granted since a majority had. */
  readonly #joining: (() => void)[] = [];
  /** Who waits and was not yet seen in a queue. */
  readonly #queueing: string[] = [];

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
      for (const learn of this.#joining) learn();
      const from = this.#pace.now();
      this.#comparison.state(step, await this.#state(), from);
      const messages = await this.messages.take();
      this.#comparison.published(
        step,
        messages.map(({ channel, payload }) => ({ channel: this.#withRoles(this.names.recorded(channel)), payload })),
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
    const reply = await admin().call(word, this.names.ours(first), ...rest);
    // Whoever compares the messages listens, too.
    const receivers = word === 'PUBLISH' ? 1 : 0;
    this.#comparison.value(step, `reply of ${word}`, step.result, step.at, Number(reply) - receivers, first, step.at);
  }

  async #shared(step: Step, kind: string, object: string): Promise<void> {
    const { client, thread } = step.actor!;
    const { method, args } = step.call;
    const abort = new AbortController();
    this.#comparison.called(step);
    const name = this.names.prefix + object;
    const plain = method.replace(/Async$/, '');
    // There is no such call of ours; what it is there for is to begin anew.
    const given = args.map((arg) => this.#permitsIn(arg)) as (string | number)[];
    // Of every object of Redisson, and not of ours; what it is there for is to begin anew, or to end.
    const result =
      plain === 'delete' && kind !== 'latch'
        ? admin().del(name, takenPermitsKey(name)).then(Boolean)
        : plain === 'expire'
          ? admin()
              .pexpire(name, Number(/^PT([\d.]+)S$/.exec(String(args[0]))?.[1]) * 1_000)
              .then(Boolean)
          : SHARED_CALLS[kind]!(this.clients.get(client)!, name, plain, given, abort.signal);
    const call: Call = {
      thread,
      abort,
      from: this.#pace.now(),
      promise: result.then(
        (value) => void (call.outcome = { result: value }),
        (error: unknown) => void (call.outcome = { code: (error as LockError).code }),
      ),
    };
    this.#calls.set(step.i, call);
    if (step.result !== PENDING) await call.promise;
  }

  async #call(step: Step, kind: string, object: string): Promise<void> {
    const { client, thread } = step.actor!;
    const { method, times, of } = signature(step, thread);
    const owner = method === 'isHeldByThread' ? thread : of;
    const name = this.names.prefix + object.replace(/#shared$/, '');
    const context = this.#context(client, owner);
    const lock =
      kind === 'multi' || kind === 'red'
        ? this.#joint(kind, client, object, context)
        : this.#lock(kind, client, name, context);
    if (this.#comparison.deviation(step).unlocksFirst) await lock.unlock().catch(() => undefined);
    this.#comparison.called(step);
    const abort = new AbortController();
    const asked = this.#context(client, of);
    const call: Call = {
      thread,
      abort,
      from: this.#pace.now(),
      promise: callLock(lock, method, times, abort.signal, asked).then(
        (result) => {
          call.outcome = { result: method === 'getName' ? this.names.recorded(lock.name) : result };
          const hold = lock.currentHold();
          const learn = (): void => {
            for (const each of hold?.owner.split(', ') ?? []) {
              const [label] = [...this.clients].find(([, { id }]) => each.startsWith(id)) ?? [client];
              this.#roles.set(each, `<${label}>:${roleOf(owner)}`);
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
    if (step.result === PENDING) {
      this.#queueing.push(`<${client}>:${roleOf(owner)}`);
      return;
    }
    await call.promise;
    if (method !== 'tryLock') this.#pace.did(callAt(step));
  }

  /** Of a group the name has the values, too: `g(v1,v2)`. */
  #lock(kind: string, client: string, name: string, context: LockContext): AnyLock {
    const [, group = name, values = ''] = (kind === 'group' && /^(.*)\((.*)\)$/.exec(name)) || [];
    return LOCKS[kind]!(this.clients.get(client)!, group, context, values.split(','));
  }

  /** `lock:l1,lock:l2`, each perhaps at a client of its own: `lock:l1@A`. */
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
    for (const { step: i, ...recorded } of step.completed ?? []) {
      if (this.#comparison.deviation({ i }).doesNotWait) continue;
      await Promise.race([this.#calls.get(i)?.promise, new Promise((resume) => setTimeout(resume, STILL_WAITS_MS))]);
      this.#outcome(step, i, recorded, key);
    }
    if (step.actor === null) return;
    if (step.result !== PENDING) this.#outcome(step, step.i, step, key);
    else if (
      (this.#calls.get(step.i)?.outcome !== undefined) !==
      (this.#comparison.deviation(step).doesNotWait ?? false)
    )
      this.#comparison.differs(step, 'the call does not wait when it should');
  }

  #outcome(step: Step, i: number, recorded: { result?: unknown; error?: JavaError }, key: string): void {
    const call = this.#calls.get(i);
    if (call?.outcome === undefined) return this.#comparison.differs(step, `the call of step ${i} still waits`);
    const { outcome, from } = call;
    const expected = this.#comparison.deviation(step);
    const code = (expected.code ?? (!('result' in expected) && recorded.error && codeOf(recorded.error))) || undefined;
    this.#comparison.value(step, `error of step ${i}`, code, step.at, outcome.code, key, from);
    if (code !== undefined) return;
    const own = this.#comparison.deviation(step);
    const result = 'result' in own ? own.result : recorded.result === '<void>' ? undefined : recorded.result;
    if (typeof outcome.result === 'string') outcome.result = this.names.recorded(outcome.result);
    this.#learnPermits(result, outcome.result);
    outcome.result = this.#recordedPermits(outcome.result);
    this.#comparison.value(step, `result of step ${i}`, result, step.at, outcome.result, key, from);
  }

  /** What was granted stands for what was granted in the recording. */
  #learnPermits(recorded: unknown, ours: unknown): void {
    const granted = [ours].flat();
    [recorded].flat().forEach((id, at) => {
      const own = granted[at];
      if (isPermit(id) && typeof own === 'string') this.#roles.set(own, id);
    });
  }

  #recordedPermits(ours: unknown): unknown {
    if (Array.isArray(ours)) return ours.map((each) => this.#recordedPermits(each));
    return typeof ours === 'string' ? (this.#roles.get(ours) ?? ours) : ours;
  }

  /** One that was never granted is one that nobody knows. */
  #permitsIn(arg: unknown): unknown {
    if (Array.isArray(arg)) return arg.map((each) => this.#permitsIn(each));
    if (!isPermit(arg)) return arg;
    return [...this.#roles].find(([, id]) => id === arg)?.[0] ?? '0'.repeat(32);
  }

  #context(client: string, thread: string): LockContext {
    const name = `${client}:${thread}`;
    const context = this.#contexts.get(name) ?? new LockContext();
    this.#contexts.set(name, context);
    return context;
  }

  async #state(): Promise<Record<string, KeyState>> {
    const state = Object.entries(await readState(admin())).filter(
      ([key]) => key.includes(this.names.prefix) && !key.startsWith('holdfast_'),
    );
    for (const [key, { value }] of state) {
      if (!key.startsWith('redisson_lock_queue:')) continue;
      for (const owner of value as string[]) {
        if (OURS.test(owner) && !this.#roles.has(owner)) this.#roles.set(owner, this.#queueing.shift() ?? owner);
      }
    }
    let text = this.#withRoles(JSON.stringify(state.map(([key, value]) => [this.names.recorded(key), value])));
    for (const value of VALUES) text = text.replaceAll(valueField(value), recordedField(value));
    return Object.fromEntries(JSON.parse(text) as [string, KeyState][]);
  }

  #withRoles(text: string): string {
    return [...this.#roles].reduce((replaced, [owner, role]) => replaced.replaceAll(owner, role), text);
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
  const unit = args.findIndex((arg) => arg === 'MILLISECONDS' || arg === 'SECONDS');
  const ms = args[unit] === 'SECONDS' ? 1_000 : 1;
  const times = unit < 0 ? [] : args.slice(0, unit).map((time) => Number(time) * ms);
  const [named] = args.slice(unit + 1);
  const of = named === undefined ? thread : String(named).replace(/^<(.*)>$/, '$1');
  return { method: method.replace(/Async$/, ''), times, of };
}
