import { register as globalRegister, type Registry } from 'prom-client';
import { InvalidArgumentError, type ClientStats, type EventBus } from '../../index.js';
import { metricsOf, type HoldfastMetrics } from './metrics.js';

/** A client, as {@link collectMetrics} uses it. */
export interface MeasuredClient {
  readonly events: EventBus;
  stats(): ClientStats;
}

/** The options of {@link collectMetrics}. */
export interface CollectMetricsOptions {
  /** The client to measure. The metrics of several clients in one registry add up. */
  client: MeasuredClient;
  /**
   * The registry of prom-client.
   *
   * @defaultValue the global registry of prom-client
   */
  register?: Registry | undefined;
  /**
   * Returns the group of a lock, by its name: one of a few words, such as `order` for `order:42`. It becomes the label
   * `group`. A metric never carries the name itself. If the function returns `undefined`, the lock has the group of its
   * `lockName`.
   *
   * @defaultValue the group of a name that `lockName` made: its template, such as `order:{}`. Otherwise the label is empty.
   */
  groupOf?: ((lockName: string) => string | undefined) | undefined;
}

/**
 * Adds the metrics of a client to a registry of prom-client. Times are in seconds. Another call for the same client and
 * registry counts nothing twice: the `groupOf` of the first call applies.
 *
 * @returns a function that stops the measurement of this client, after as many calls of `collectMetrics` when each of their
 *   functions was called. The metrics stay in the registry.
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: an option is invalid.
 * @example
 * collectMetrics({ client, register });
 * app.get('/metrics', async (_, response) => response.type(register.contentType).send(await register.metrics()));
 */
export function collectMetrics(options: CollectMetricsOptions): () => void {
  const { client, register = globalRegister, groupOf } = checkOptions(options);
  const metrics = metricsOf(register);
  return metrics.measure(client, () => listen(client.events, metrics, groupOf));
}

/** Notes what the events of a client say. Returns a function that ends this. */
function listen(events: EventBus, metrics: HoldfastMetrics, groupOf: CollectMetricsOptions['groupOf']): () => void {
  const label = (lockName: string, group: string | undefined): string => groupOf?.(lockName) ?? group ?? '';
  const stops = [
    events.on('acquired', ({ lockName, group, kind, mode, waited, handedOff }) => {
      const labels = { kind, mode, group: label(lockName, group) };
      metrics.wait.observe({ ...labels, outcome: 'granted' }, waited / 1_000);
      if (handedOff) metrics.handOvers.inc(labels);
    }),
    events.on('notAcquired', ({ lockName, group, kind, mode, waited, outcome }) => {
      const labels = { kind, mode, group: label(lockName, group) };
      metrics.wait.observe({ ...labels, outcome }, waited / 1_000);
      if (outcome === 'busy') metrics.timeouts.inc(labels);
    }),
    events.on('permitsAcquired', ({ lockName, group, kind, waited, handedOff }) => {
      const labels = { kind, mode: 'shared', group: label(lockName, group) };
      metrics.wait.observe({ ...labels, outcome: 'granted' }, waited / 1_000);
      if (handedOff) metrics.handOvers.inc(labels);
    }),
    events.on('latchPassed', ({ lockName, group, waited }) => {
      const labels = { kind: 'latch', mode: 'shared', group: label(lockName, group) };
      metrics.wait.observe({ ...labels, outcome: 'granted' }, waited / 1_000);
    }),
    events.on('released', ({ lockName, group, kind, mode, held }) =>
      metrics.held.observe({ kind, mode, group: label(lockName, group), end: 'released' }, held / 1_000),
    ),
    events.on('leaseLost', ({ lockName, group, kind, mode, reason, held }) => {
      const labels = { kind, mode, group: label(lockName, group) };
      metrics.held.observe({ ...labels, end: 'lost' }, held / 1_000);
      metrics.lost.inc({ ...labels, reason });
    }),
    events.on('renewed', () => metrics.renewals.inc({ result: 'confirmed' })),
    events.on('renewFailed', () => metrics.renewals.inc({ result: 'failed' })),
    events.on('connectionError', ({ connection }) => metrics.connectionErrors.inc({ connection })),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function checkOptions(options: CollectMetricsOptions): CollectMetricsOptions {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object with client', options);
  }
  const { client, register, groupOf } = options as Partial<Record<keyof CollectMetricsOptions, unknown>>;
  const { stats, events } = (client ?? {}) as Partial<Record<keyof MeasuredClient, unknown>>;
  if (typeof stats !== 'function' || typeof events !== 'object') {
    throw new InvalidArgumentError('client', 'a client, as createClient() returns it', undefined);
  }
  if (register !== undefined && !('getSingleMetric' in Object(register))) {
    throw new InvalidArgumentError('register', 'a Registry of prom-client', undefined);
  }
  if (groupOf !== undefined && typeof groupOf !== 'function') {
    throw new InvalidArgumentError('groupOf', 'a function of the lock name', groupOf);
  }
  return options;
}
