import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { answered, holdElsewhere, inFlow } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { until } from '../support/time/until.js';

/** Longer than any of these tests. */
export const LEASE_MS = 20_000;

/** The objects of an operation. `other` is a client without faults. */
export interface Stage {
  readonly client: LockClient;
  readonly other: LockClient;
  /** In front of `client`. */
  readonly proxy: FaultProxy;
  readonly name: string;
}

/** The call under test, after its preparation. */
interface Prepared {
  act(): Promise<unknown>;
  /** The content of Redis when the call has taken effect exactly once. */
  after(): Record<string, string>;
  /** The result of the call. */
  readonly answer?: unknown;
  /** The lease that is in Redis then, ms; absent: there is none. */
  readonly leaseMs?: number;
  /** Releases all holds. */
  end(): Promise<unknown>;
  /** Holds that must still be valid after the operation. */
  readonly kept?: readonly Hold[];
}

export interface Operation {
  readonly sha: string;
  prepare(stage: Stage): Promise<Prepared>;
}

const sha = (script: { script: { sha: string } | undefined }): string => script.script!.sha;

const holdOf = ({ client, name }: Stage, leaseTime = LEASE_MS): Promise<Hold> =>
  holdElsewhere(client.getLock(name), leaseTime);

const inside = ({ client, name }: Stage, hold: Hold, leaseTime = LEASE_MS): Promise<Hold> =>
  hold.run(() => client.getLock(name).acquire({ waitTime: 0, leaseTime }));

/**
 * A call of the same client that is parked behind its hold: subscribed, and with a busy reply after that. It continues
 * to wait while Redis is unavailable, which a call without a time limit would not.
 */
export async function parkedBehind({ client, proxy, name }: Stage, leaseTime = LEASE_MS): Promise<Promise<Hold>[]> {
  const tries = (): number =>
    proxy.log.filter(
      ({ args, answeredAt }) => args[0] === sha(scripts.acquire) && args.includes(name) && answeredAt !== undefined,
    ).length;
  const before = tries();
  const waiting = inFlow(async () => client.getLock(name).acquire({ leaseTime, waitTime: LEASE_MS }));
  waiting.catch(() => undefined);
  await until(() => tries() > before, 'it gets a busy reply');
  await answered(client);
  return [waiting];
}

export const operations: Readonly<Record<string, Operation>> = {
  acquire: {
    sha: sha(scripts.acquire),
    async prepare({ client, name }) {
      let hold: Hold | undefined;
      return {
        act: async () =>
          (hold = await inFlow(async () => client.getLock(name).acquire({ waitTime: 0, leaseTime: LEASE_MS }))),
        after: () => ({ [hold!.owner]: '1' }),
        leaseMs: LEASE_MS,
        end: async () => hold!.release(),
      };
    },
  },
  'nested acquire': {
    sha: sha(scripts.acquireNested),
    async prepare(stage) {
      const outer = await holdOf(stage);
      let nested: Hold | undefined;
      return {
        act: async () => (nested = await inside(stage, outer)),
        after: () => ({ [outer.owner]: '2' }),
        leaseMs: LEASE_MS,
        async end() {
          await nested!.release();
          await outer.release();
        },
        kept: [outer],
      };
    },
  },
  release: {
    sha: sha(scripts.release),
    async prepare(stage) {
      const hold = await holdOf(stage);
      return { act: () => hold.release(), after: () => ({}), end: async () => undefined };
    },
  },
  'partial release': {
    sha: sha(scripts.releasePartial),
    async prepare(stage) {
      const outer = await holdOf(stage);
      const nested = await inside(stage, outer, LEASE_MS / 2);
      return {
        act: () => nested.release(),
        after: () => ({ [outer.owner]: '1' }),
        leaseMs: LEASE_MS,
        end: () => outer.release(),
        kept: [outer],
      };
    },
  },
  'hand-off': {
    sha: sha(scripts.handOff),
    async prepare(stage) {
      const hold = await holdOf(stage);
      const [waiting] = await parkedBehind(stage);
      let next: Hold | undefined;
      return {
        async act() {
          await hold.release();
          next = await waiting;
        },
        after: () => ({ [next!.owner]: '1' }),
        leaseMs: LEASE_MS,
        end: () => next!.release(),
      };
    },
  },
  'force unlock': {
    sha: sha(scripts.release),
    async prepare({ client, other, name }) {
      await holdElsewhere(other.getLock(name), LEASE_MS);
      return {
        act: () => client.getLock(name).forceUnlock(),
        answer: true,
        after: () => ({}),
        end: async () => undefined,
      };
    },
  },
  extend: {
    sha: sha(scripts.renew),
    async prepare(stage) {
      const hold = await holdOf(stage, LEASE_MS / 2);
      return {
        act: () => hold.extend(LEASE_MS),
        after: () => ({ [hold.owner]: '1' }),
        leaseMs: LEASE_MS,
        end: () => hold.release(),
        kept: [hold],
      };
    },
  },
  renew: {
    sha: sha(scripts.renew),
    async prepare(stage) {
      const { client, name } = stage;
      const hold = await holdElsewhere(client.getLock(name));
      return {
        act: () =>
          new Promise<void>((renewed) =>
            client.events.on('renewed', ({ lockName }) => {
              if (lockName === name) renewed();
            }),
          ),
        after: () => ({ [hold.owner]: '1' }),
        end: () => hold.release(),
        kept: [hold],
      };
    },
  },
};
