import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { lockChannel } from '../../src/redis/keys.js';
import type { Operation } from '../../src/redis/scripts/script.js';
import { parseLuaHeader } from '../../.ci/lua/header.mjs';
import { readScript } from '../support/lua/script-files.js';
import { Published, type Message } from '../support/clients/published.js';
import { admin, freshName, leavesKeys } from '../support/redis.js';
import { readState, type KeyState } from '../support/redis-state.js';

/** One script on a real server, without anything of the client around it. */
export interface ScriptBench {
  /** Fresh for each test. */
  readonly name: string;
  readonly channel: string;
  /** The reply of Redis. */
  run(keys: readonly string[], ...args: (string | number)[]): Promise<unknown>;
  state(): Promise<Record<string, KeyState>>;
  /** The messages since the last call. */
  published(): Promise<Message[]>;
  /** A not-after that has passed on the server's clock, and one that has not. */
  notAfter(ms: number): Promise<number>;
}

export interface OpenBench extends ScriptBench {
  close(): Promise<void>;
}

type Property = (bench: ScriptBench) => Promise<void>;

/** For each value on the Returns lines of the header: its properties, each with its test. */
export function describeScript(
  operation: Pick<Operation<never, never, unknown>, 'name' | 'script'>,
  answers: Record<string, Record<string, Property>>,
): void {
  leavesKeys('a script that is called on its own leaves keys that a client would remove');
  describe(operation.name, () => {
    const source = operation.script!.source;
    let bench: OpenBench;

    beforeEach(async () => {
      bench = await openBench(source);
    });
    afterEach(() => bench.close());

    test('each line of Returns has its tests', () => {
      expect(Object.keys(answers).sort()).toEqual(
        [...parseLuaHeader(readScript(`lua/${operation.name}.lua`)).returns].sort(),
      );
      expect(Object.values(answers).map((properties) => Object.keys(properties).length)).not.toContain(0);
    });

    for (const [answer, properties] of Object.entries(answers)) {
      describe(answer, () => {
        for (const [property, proof] of Object.entries(properties)) test(property, () => proof(bench));
      });
    }
  });
}

export async function openBench(source: string): Promise<OpenBench> {
  const name = freshName('script');
  const published = await Published.on(name);
  return {
    name,
    channel: lockChannel(name),
    run: (keys, ...args) => admin().eval(source, keys.length, ...keys, ...args),
    state: () => readState(admin()),
    published: () => published.take(),
    async notAfter(ms) {
      const [seconds, micros] = await admin().time();
      return Math.floor(Number(seconds) * 1_000 + Number(micros) / 1_000) + ms;
    },
    close: () => published.close(),
  };
}

/** A hash of one owner, as scripts leave it. `pttl` may be lower by the delay of a busy machine. */
export function heldBy(owner: string, holdCount: number, leaseMs: number): KeyState {
  return { type: 'hash', value: { [owner]: String(holdCount) }, pttl: ttlOf(leaseMs) };
}

/** Expiries count from the run of the script, and a read happens later, never earlier. */
function ttlOf(leaseMs: number): number {
  // Near 2^53 ioredis rounds the numbers that it reads.
  const rounding = leaseMs > 2 ** 52 ? 1 : 0;
  return leaseMs < 0 ? leaseMs : (between(leaseMs - 1_000, leaseMs + rounding) as number);
}

export function between(least: number, most: number): unknown {
  return {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (value: unknown) => typeof value === 'number' && value >= least && value <= most,
    toString: () => 'between',
    toAsymmetricMatcher: () => `between ${least} and ${most}`,
  };
}
