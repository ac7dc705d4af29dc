import { lockChannel } from '../../../src/redis/keys.js';
import * as scripts from '../../../src/redis/scripts/lock.js';
import { timeLeftNumber, type TimeLeft } from '../../../src/lease-time.js';
import * as reads from '../../../src/redis/scripts/reads.js';
import { Published } from '../../support/clients/published.js';
import { admin } from '../../support/redis.js';
import { readState } from '../../support/redis-state.js';
import { runOperation as run } from '../../support/lua/run-operation.js';
import { Comparison, type Deviation } from './comparison.js';
import { Names, Pace, type Scenario, type Step } from './recording.js';

/** The first arguments of a release. */
const freeing = (lock: string) => ['PUBLISH', lockChannel(lock), -1, '', '', 1, '', 0] as const;

/** Replaces each script of Redisson by its counterpart of Holdfast, and compares the results. */
export async function replayScripts(
  scenario: Scenario,
  deviations: readonly Deviation[],
  name: string,
): Promise<string[]> {
  const names = new Names(`${name}:`);
  const published = await Published.on(names.prefix);
  try {
    return await new ScriptReplay(scenario, deviations, names, published).run();
  } finally {
    await published.close();
    const left = await admin().keys(`${names.prefix}*`);
    if (left.length > 0) await admin().del(left);
  }
}

/**
 * When a watchdog ticks is not exact, and one of the recorded ticks came 5 ms before the end of the lease that it
 * saved: we are early with them, since a timer that is late by that much is nothing wrong.
 */
function when(step: Step, { at, reply }: Step['scripts'][number]): number {
  return Array.isArray(reply) ? (step.at + at) / 2 : at;
}

interface Answer {
  readonly what: string;
  readonly recorded: unknown;
  readonly ours: unknown;
  readonly key: string;
}

/** Owners as they are on the wire, for those of a recording: a script knows a lock by the UUID of a client. */
class Owners {
  readonly #recorded = new Map<string, string>();

  ours(recorded: string): string {
    const [, label = '', thread = ''] = /^<([A-Z])>:<?t?(\d+)>?$/.exec(recorded) ?? [];
    if (label === '') return recorded;
    const ours = `00000000-0000-4000-8000-${label.charCodeAt(0).toString(16).padStart(12, '0')}:${thread}`;
    this.#recorded.set(ours, recorded);
    return ours;
  }

  recorded<T>(state: T): T {
    const text = [...this.#recorded].reduce((told, [ours, recorded]) => {
      return told.replaceAll(JSON.stringify(ours), JSON.stringify(recorded));
    }, JSON.stringify(state));
    return JSON.parse(text) as T;
  }
}

class ScriptReplay {
  readonly #owners = new Owners();
  readonly #pace = new Pace();
  readonly #comparison: Comparison;
  /** key -> owner -> end of the lease of each hold: the knowledge of the client that goes into its requests. */
  readonly #held = new Map<string, Map<string, number[]>>();

  constructor(
    private readonly scenario: Scenario,
    deviations: readonly Deviation[],
    private readonly names: Names,
    private readonly messages: Published,
  ) {
    this.#comparison = new Comparison(scenario, deviations, 'scripts', this.#pace);
  }

  async run(): Promise<string[]> {
    for (const step of this.scenario.steps) {
      await this.#replay(step);
      await this.#pace.until(step.stateAt);
      const at = this.#pace.now();
      const state = Object.entries(await readState(admin(), this.names.prefix));
      this.#comparison.state(
        step,
        this.#owners.recorded(Object.fromEntries(state.map(([key, value]) => [this.names.recorded(key), value]))),
        at,
      );
      const messages = await this.messages.take();
      this.#comparison.published(
        step,
        messages.map(({ channel, payload }) => ({ channel: this.names.recorded(channel), payload })),
      );
    }
    return this.#comparison.differences;
  }

  async #replay(step: Step): Promise<void> {
    if (step.call.object === 'redis') {
      await this.#pace.until(step.at);
      const [word = '', ...args] = step.call.args.map(String);
      await admin().call(word, ...args.map((arg, at) => (at === 0 ? this.names.ours(arg) : arg)));
      if (word === 'DEL') this.#held.delete(args[0] ?? '');
    }
    const actions = [
      ...step.scripts.map((script) => ({ ...script, at: when(step, script), act: () => this.#script(script) })),
      ...step.commands.map((command) => ({ ...command, act: () => this.#read(command) })),
    ].sort((a, b) => a.n - b.n);
    for (const { at, act } of actions) {
      await this.#pace.until(at);
      this.#comparison.called(step);
      const from = this.#pace.now();
      const answer = await act();
      this.#pace.did(at);
      if (answer === undefined) continue;
      const { what, recorded, ours, key } = answer;
      this.#comparison.value(step, `reply of the ${what}`, recorded, at, ours, key, from);
    }
  }

  /** Translates replies in words to the numbers of Redisson's scripts: 1, 0 and nil. */
  async #script({ keys, args, reply: recorded }: Step['scripts'][number]): Promise<Answer> {
    const [key = ''] = keys;
    args = args.map((arg) => this.#owners.ours(arg));
    if (Array.isArray(recorded)) {
      const ours = (await this.#renew(keys, args)).map((left) => (left > 0 ? 1 : 0));
      return { what: 'renewal', recorded, ours, key };
    }
    const [first = '', owner = '', releaser = ''] = args;
    if (keys.length === 1)
      return { what: 'acquire', recorded, ours: await this.#acquire(key, owner, Number(first)), key };
    if (keys.length === 2) return { what: 'force release', recorded, ours: await this.#force(key), key };
    return { what: 'release', recorded, ours: await this.#release(key, releaser), key };
  }

  async #read({ cmd, reply }: Step['commands'][number]): Promise<Answer | undefined> {
    const [word = '', key = '', field] = cmd;
    const operations: Record<string, Parameters<typeof run>[0]> = {
      EXISTS: reads.exists,
      HEXISTS: reads.hexists,
      HGET: reads.hgetCount,
      PTTL: reads.pttl,
    };
    const operation = operations[word];
    // The latch's DEL; and there are no waiters here that would subscribe.
    if (operation === undefined) return undefined;
    const answer = await run(operation, [this.names.ours(key)], field === undefined ? [] : [this.#owners.ours(field)]);
    const ours = word === 'PTTL' ? timeLeftNumber(answer as TimeLeft) : answer;
    const recorded = word === 'PTTL' ? reply : word === 'HGET' ? Number(reply ?? 0) : reply === 1;
    return { what: word, recorded, ours, key };
  }

  async #acquire(key: string, owner: string, leaseMs: number): Promise<unknown> {
    const holds = this.#holdsOf(key, owner);
    const keys = [this.names.ours(key)];
    const sentAt = this.#pace.now();
    const reply =
      holds.length === 0
        ? await run(scripts.acquire, keys, [owner, leaseMs, '', '', 0, 0])
        : await run(scripts.acquireNested, keys, [owner, holds.length + 1, leaseMs]);
    if (reply.kind === 'busy') return reply.retryAfterMs ?? -1;
    if (reply.kind === 'gone') return reply.kind;
    holds.push(sentAt + leaseMs);
    return null;
  }

  async #release(key: string, owner: string): Promise<1 | 0 | null> {
    const holds = this.#holdsOf(key, owner);
    holds.pop();
    if (holds.length > 0) {
      const left = Math.ceil(Math.max(...holds) - this.#pace.now());
      const reply = await run(scripts.releasePartial, [this.names.ours(key)], [owner, holds.length, left]);
      return reply.kind === 'held' ? 0 : null;
    }
    this.#held.get(key)?.delete(owner);
    const ours = this.names.ours(key);
    return (await run(scripts.release, [ours], [...freeing(ours), owner])) === 'freed' ? 1 : null;
  }

  async #force(key: string): Promise<1 | 0> {
    const ours = this.names.ours(key);
    const owners = await run(reads.hkeys, [ours], []);
    this.#held.delete(key);
    if (owners.length === 0) return 0;
    return (await run(scripts.release, [ours], [...freeing(ours), ...owners])) === 'freed' ? 1 : 0;
  }

  async #renew(keys: readonly string[], [lease = '', ...owners]: readonly string[]): Promise<number[]> {
    const sentAt = this.#pace.now();
    const pairs = owners.flatMap((owner) => [owner, Number(lease)]);
    const replies = await run(
      scripts.renew,
      keys.map((key) => this.names.ours(key)),
      pairs,
    );
    return keys.map((key, at) => {
      const holds = this.#holdsOf(key, owners[at] ?? '');
      const reply = replies[at] ?? 'lost';
      if (reply !== 'lost') holds.forEach((end, i) => (holds[i] = Math.max(end, sentAt + Number(lease))));
      else holds.length = 0;
      return reply === 'lost' ? 0 : reply.remainingMs;
    });
  }

  #holdsOf(key: string, owner: string): number[] {
    const owners = this.#held.get(key) ?? new Map<string, number[]>();
    this.#held.set(key, owners);
    const holds = owners.get(owner) ?? [];
    owners.set(owner, holds);
    return holds;
  }
}
