import { randomUUID } from 'node:crypto';
import { ClientClosedError, InvalidArgumentError } from '../errors.js';
import { examineServers, probe } from '../inspection/doctor/doctor.js';
import type { DoctorOptions, Finding } from '../inspection/doctor/finding.js';
import { Servers } from '../inspection/servers.js';
import { refuseUnknown } from '../options.js';
import { tokenKey } from '../redis/keys.js';
import { PlainLockProtocol } from '../protocols/plain-lock-protocol.js';
import { expireIn } from '../redis/scripts/object.js';
import { exists } from '../redis/scripts/reads.js';
import { PROBE_LEASE_MS } from '../timing.js';
import type { LockClient } from './lock-client.js';
import { probesOf, type ProbeMeans } from './probes.js';
import { wiringOf } from './wiring-of.js';

/**
 * Checks the servers of a client for what matters to locks: version, eviction, persistence, replicas, clocks, latency,
 * pub/sub and permissions. A server of a cluster that does not reply, and slots without an owner, are findings.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `client` is no client, or an option is invalid.
 * @throws {RedisUnavailableError} `ERR_LOCK_REDIS_UNAVAILABLE`: no server replied within one command deadline.
 * @throws {ClientClosedError} `ERR_LOCK_CLIENT_CLOSED`: the client was closed before or during the call.
 * @example
 * for (const { level, message, advice } of await doctor(client)) if (level === 'error') console.log(message, advice);
 */
export async function doctor(client: LockClient, options: DoctorOptions = {}): Promise<Finding[]> {
  const wiring = typeof client === 'object' && (client as unknown) !== null ? wiringOf(client) : undefined;
  if (wiring === undefined) throw new InvalidArgumentError('client', 'a client of createClient()', {});
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object', options);
  }
  refuseUnknown('options', options, ['probes']);
  if (wiring.client.closed) throw new ClientClosedError();
  const { clock, executor, topology } = wiring;
  const examined = { servers: new Servers(executor, topology), clock: clock.clock, executor, topology };
  const findings = await examineServers(examined);
  if (options.probes === false) return findings;
  const { port } = wiring;
  const means: ProbeMeans = {
    expire: (name) => executor.ask(expireIn, [tokenKey(port.keyPrefix + name)], [String(PROBE_LEASE_MS)]),
    lockElsewhere: async (name, leaseMs) => {
      const protocol = new PlainLockProtocol(port, name);
      const owner = `${randomUUID()}:1`;
      const { error } = await protocol.acquire(owner, leaseMs, false).done;
      if (error !== undefined) throw error;
      return {
        isHeard: () => topology.subscriber.isConfirmed(protocol.channel),
        release: async () => {
          // The call that waits tries once more when its subscription is confirmed. This read follows that try.
          await executor.ask(exists, [protocol.key], []);
          const released = await protocol.release([owner]).done;
          if (released.error !== undefined) throw released.error;
        },
      };
    },
    clock,
    limitMs: executor.commandTimeout,
  };
  return [...findings, ...(await probe(probesOf(client, randomUUID(), means)))];
}
