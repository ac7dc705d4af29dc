import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockClient } from '../../../../src/client/create-client.js';
import { now } from '../../../../bench/monotonic.js';
import { until } from '../../../support/time/until.js';
import { JavaError, type Jvm, type JvmObject } from '../jvm.js';
import { compareStep, type Outcome, type Seen } from './comparison.js';
import { HoldfastActor } from './holdfast-actor.js';
import type { Scenario, Step } from './scenario.js';
import { readBoth } from './wire-state.js';

/** The Holdfast error for each exception of Java. */
const CODES: Record<string, string> = {
  IllegalMonitorStateException: 'ERR_LOCK_NOT_OWNER',
  InterruptedException: 'ERR_LOCK_ABORTED',
  IllegalArgumentException: 'ERR_LOCK_INVALID_ARGUMENT',
  RedisException: 'ERR_LOCK_UNKNOWN_PERMIT',
};

interface Call {
  readonly outcome: Promise<Outcome>;
  ended: boolean;
}

interface Side {
  readonly prefix: string;
  /** Owner or permit on the wire -> its name in the comparison. */
  readonly roles: Map<string, string>;
  readonly answers: Map<string, unknown>;
  readonly waiting: Map<string, Call>;
  /** Actors that have begun to wait and whose owner is still unknown. */
  readonly unseen: string[];
  /** By name. */
  readonly clientIds: ReadonlyMap<string, string>;
  call(step: Step): Promise<unknown>;
  /** Resolves when the waiters are parked, where that is visible. */
  settled?(step: Step): Promise<void>;
}

/** Both kinds make the same calls at the same time, and after each the server is read once for both. */
export class Lockstep {
  readonly #messages: { channel: string; payload: string }[] = [];
  readonly #markers = new Set<string>();
  #scenarios = 0;

  private constructor(
    private readonly jvm: Jvm,
    private readonly clients: ReadonlyMap<string, LockClient>,
    private readonly redis: Redis,
    private readonly subscriber: Redis,
  ) {
    subscriber.on('pmessage', (_pattern: string, channel: string, payload: string) => {
      if (channel === 'marker') this.#markers.add(payload);
      else this.#messages.push({ channel, payload });
    });
  }

  /** The clients of both kinds go by the same names. */
  static async open(url: string, jvm: Jvm, clients: ReadonlyMap<string, LockClient>): Promise<Lockstep> {
    const subscriber = new Redis(url);
    const lockstep = new Lockstep(jvm, clients, new Redis(url), subscriber);
    await subscriber.psubscribe('*');
    return lockstep;
  }

  async close(): Promise<void> {
    await Promise.all([this.redis.quit(), this.subscriber.quit()]);
  }

  /** Returns the differences that are not declared, and the declared ones that did not show. */
  async run(scenario: Scenario, version: string): Promise<string[]> {
    const number = ++this.#scenarios;
    const theirs = this.#redisson(`j${number}:`);
    const ours = this.#holdfast(`h${number}:`);
    const differences: string[] = [];
    let skewMs = 0;
    for (const [i, step] of scenario.steps.entries()) {
      this.#messages.length = 0;
      const at = now();
      const outcomes = await Promise.all([theirs, ours].map((side) => this.#take(side, step)));
      const woken = await Promise.all([theirs, ours].map((side) => wakeUps(side, step)));
      skewMs = Math.max(skewMs, ...apart(step, at, [outcomes[0]!, ...woken[0]!], [outcomes[1]!, ...woken[1]!]));
      await this.#settle();
      const state = await readBoth(this.redis);
      const seen = [theirs, ours].map((side, k): Seen => {
        const mine = ([key]: readonly [string, unknown]): boolean => key.includes(side.prefix);
        return renamed(side, {
          outcome: outcomes[k]!.value,
          woken: woken[k]!.map(({ value }) => value),
          published: this.#messages
            .filter(({ channel }) => channel.includes(side.prefix))
            .map(({ channel, payload }) => `${channel} ${payload}`),
          state: Object.fromEntries(state.filter(mine)),
        });
      });
      const found = compareStep(seen[0]!, seen[1]!, step, version, 100 + skewMs, now() - at);
      differences.push(...found.map((text) => `${scenario.name}, step ${i + 1} (${describe(step)}): ${text}`));
    }
    const left = (await this.redis.keys('*')).filter((key) => key.includes(theirs.prefix) || key.includes(ours.prefix));
    if (left.length > 0) await this.redis.del(left);
    return differences;
  }

  #redisson(prefix: string): Side {
    const { jvm } = this;
    const roles = new Map<string, string>();
    const named = (object: JvmObject): JvmObject => ({
      ...object,
      ...(object.name !== undefined && { name: prefix + object.name }),
      ...(object.members && { members: object.members.map(named) }),
    });
    const answers = new Map<string, unknown>();
    return {
      prefix,
      roles,
      answers,
      waiting: new Map(),
      unseen: [],
      clientIds: new Map(),
      async settled({ actor, object: { kind }, method }) {
        // A spin lock sleeps, and for a token Redisson waits as its asynchronous calls do.
        if (!kind.startsWith('spin') && !method.includes('Token')) await jvm.thread(`${prefix}${actor}`).parked();
      },
      async call({ actor, object, method, args }) {
        const thread = jvm.thread(`${prefix}${actor}`, actor.split('.')[0]);
        if (method === 'interrupt') return thread.interrupt();
        if (![...roles.values()].includes(`<${actor}>`)) {
          const owner = await thread.owner();
          roles.set(owner, `<${actor}>`);
          answers.set(`thread ${actor}`, Number(owner.split(':')[1]));
        }
        const { result } = await thread.call(named(object), method, ...args.map((arg) => given(arg, answers)));
        return result ?? undefined;
      },
    };
  }

  #holdfast(prefix: string): Side {
    const actors = new Map<string, HoldfastActor>();
    const roles = new Map<string, string>();
    const answers = new Map<string, unknown>();
    return {
      prefix,
      roles,
      answers,
      waiting: new Map(),
      unseen: [],
      clientIds: new Map([...this.clients].map(([name, { id }]) => [name, id])),
      call: async ({ actor: name, object, method, args }) => {
        const actor = actors.get(name) ?? new HoldfastActor(this.clients, name, prefix);
        actors.set(name, actor);
        answers.set(`thread ${name}`, actor.context);
        if (method === 'interrupt') return actor.interrupt();
        const result = await actor.call(
          object,
          method,
          args.map((arg) => given(arg, answers)),
        );
        const owner = actor.ownerOf(object);
        if (owner !== undefined) roles.set(owner, `<${name}>`);
        return result ?? undefined;
      },
    };
  }

  /** Makes the call; one that waits is left waiting. */
  async #take(side: Side, step: Step): Promise<Outcome> {
    if (step.method === 'pass') {
      await pause(Number(step.args[0]));
      return { value: undefined, at: now() };
    }
    const call: Call = {
      ended: false,
      outcome: side.call(step).then(
        (value): Outcome => {
          if (step.as !== undefined) side.answers.set(step.as, value);
          for (const id of [value].flat()) {
            if (typeof id === 'string' && /^[0-9a-f]{32}$/.test(id)) side.roles.set(id, `<${step.as ?? 'id'}>`);
          }
          return { value, at: now() };
        },
        (error: unknown): Outcome => ({ value: codeOf(error), at: now() }),
      ),
    };
    void call.outcome.then(() => (call.ended = true));
    if (!step.waits) return call.outcome;
    const at = now();
    side.waiting.set(step.actor, call);
    side.unseen.push(step.actor);
    await pause(150);
    await Promise.race([call.outcome, side.settled?.(step)]);
    return { value: call.ended ? 'did not wait' : 'waits', at };
  }

  /** Waits until every message so far has been read. */
  async #settle(): Promise<void> {
    const marker = randomUUID();
    // Commands that a client sends after a reply, like the end of a latch.
    await pause(15);
    await this.redis.publish('marker', marker);
    await until(() => this.#markers.delete(marker), 'the messages have been read');
  }
}

async function wakeUps(side: Side, step: Step): Promise<Outcome[]> {
  return Promise.all(
    (step.wakes ?? []).map(async (actor) => {
      const call = side.waiting.get(actor)!;
      side.waiting.delete(actor);
      const at = side.unseen.indexOf(actor);
      if (at >= 0) side.unseen.splice(at, 1);
      const come = new AbortController();
      const late = pause(1_500, undefined, come).then(() => ({ value: 'sleeps on', at: now() }));
      late.catch(() => undefined); // it has arrived, and no code waits for this
      return Promise.race([call.outcome, late]).finally(() => come.abort());
    }),
  );
}

/**
 * The longest time between the runs of the two requests in Redis. For a call that is meant to take long, only the ends
 * count. The duration of any other call is the delay of the machine.
 */
function apart({ method, args }: Step, from: number, theirs: readonly Outcome[], ours: readonly Outcome[]): number[] {
  const lasts = method === 'pass' || (/^(try|await)/.test(method) && args.length > 0);
  return theirs.map(({ at }, i) => {
    const other = ours[i]!.at;
    return lasts || i > 0 ? Math.abs(at - other) : Math.max(at, other) - from;
  });
}

function given(arg: unknown, answers: ReadonlyMap<string, unknown>): unknown {
  if (Array.isArray(arg)) return arg.map((each) => given(each, answers)).flat();
  return typeof arg === 'string' && arg.startsWith('$') ? answers.get(arg.slice(1)) : arg;
}

function codeOf(error: unknown): string {
  if (error instanceof JavaError)
    return /NON_REENTRANT/.test(error.message) ? error.name : (CODES[error.name] ?? error.name);
  const { code } = error as { code?: string };
  return code ?? String(error);
}

/** Without the prefix of the keys, and with roles for owners and permits. */
function renamed(side: Side, seen: Seen): Seen {
  let text = JSON.stringify(seen).replaceAll(side.prefix, '');
  learnOwners(side, text);
  // One number may begin with another.
  for (const [wire, role] of side.roles) text = text.replace(new RegExp(`${wire}(?![0-9])`, 'g'), role);
  return JSON.parse(text) as Seen;
}

/** An unknown owner of Holdfast belongs to the first actor that has begun to wait: it is in a queue. */
function learnOwners(side: Side, text: string): void {
  for (const [client, id] of side.clientIds) {
    const owners = new Set([...text.matchAll(new RegExp(`${id}:\\d+`, 'g'))].map(([owner]) => owner));
    const unknown = [...owners].filter((owner) => !side.roles.has(owner));
    for (const owner of unknown.sort((a, b) => Number(a.split(':')[1]) - Number(b.split(':')[1]))) {
      const at = side.unseen.findIndex((actor) => actor.startsWith(`${client}.`));
      if (at >= 0) side.roles.set(owner, `<${side.unseen.splice(at, 1)[0]!}>`);
    }
  }
}

function describe({ actor, object, method, args }: Step): string {
  return `${actor} ${object.kind}:${object.name ?? ''}.${method}(${args.map(String).join(', ')})`;
}
