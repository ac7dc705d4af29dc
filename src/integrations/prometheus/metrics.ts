import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ClientStats } from '../../index.js';

/** Bounds of the buckets of both histograms, in seconds. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const LOCK = ['kind', 'mode', 'group'] as const;

interface ReadClient {
  stats(): ClientStats;
}

/** The metrics of one registry. */
export interface HoldfastMetrics {
  readonly wait: Histogram<(typeof LOCK)[number] | 'outcome'>;
  readonly held: Histogram<(typeof LOCK)[number] | 'end'>;
  readonly timeouts: Counter<(typeof LOCK)[number]>;
  readonly handOvers: Counter<(typeof LOCK)[number]>;
  readonly lost: Counter<(typeof LOCK)[number] | 'reason'>;
  readonly renewals: Counter<'result'>;
  readonly connectionErrors: Counter<'connection'>;
  /**
   * Measures a client: adds it to the gauges, and calls `start`, which returns a function that ends what it starts. A client
   * that is measured already stays so, until each returned function was called.
   */
  measure(client: ReadClient, start: () => () => void): () => void;
}

/** A registry refuses a second metric of the same name, and several clients may use one registry. */
const known = new WeakMap<Registry, HoldfastMetrics>();

/** The metrics of Holdfast in this registry. The first call creates them. */
export function metricsOf(register: Registry): HoldfastMetrics {
  const before = known.get(register);
  // `register.clear()` removes the metrics, which then have to be created again.
  if (before !== undefined && register.getSingleMetric('holdfast_hold_seconds') === before.held) return before;
  const metrics = create(register);
  known.set(register, metrics);
  return metrics;
}

function create(register: Registry): HoldfastMetrics {
  const registers = [register];
  const clients = new Map<ReadClient, { readonly stop: () => void; uses: number }>();
  const sum = (count: (stats: ClientStats) => number): number => {
    let total = 0;
    for (const client of clients.keys()) total += count(client.stats());
    return total;
  };
  const gauge = (name: string, help: string, count: (stats: ClientStats) => number): unknown =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(sum(count));
      },
    });
  gauge('holdfast_waiting', 'Acquisitions that have no outcome yet.', ({ waiting }) => waiting);
  gauge('holdfast_holding', 'Open holds of locks.', ({ holding }) => holding);
  const lock = { labelNames: LOCK, registers };
  return {
    wait: new Histogram({
      name: 'holdfast_acquire_wait_seconds',
      help: 'Time from the call to the outcome of an acquisition.',
      labelNames: [...LOCK, 'outcome'],
      buckets: BUCKETS_S,
      registers,
    }),
    held: new Histogram({
      name: 'holdfast_hold_seconds',
      help: 'Time from the grant to the end of a hold.',
      labelNames: [...LOCK, 'end'],
      buckets: BUCKETS_S,
      registers,
    }),
    timeouts: new Counter({
      name: 'holdfast_acquire_timeouts_total',
      help: 'Acquisitions that found the lock busy for their whole wait time.',
      ...lock,
    }),
    handOvers: new Counter({
      name: 'holdfast_hand_overs_total',
      help: 'Grants that another owner of the same client passed on.',
      ...lock,
    }),
    lost: new Counter({
      name: 'holdfast_lost_holds_total',
      help: 'Holds that were lost before their release.',
      labelNames: [...LOCK, 'reason'],
      registers,
    }),
    renewals: new Counter({
      name: 'holdfast_renewals_total',
      help: 'Renewals of leases, by result.',
      labelNames: ['result'],
      registers,
    }),
    connectionErrors: new Counter({
      name: 'holdfast_connection_errors_total',
      help: 'Errors of connections to Redis.',
      labelNames: ['connection'],
      registers,
    }),
    measure(client, start) {
      const measured = clients.get(client) ?? { stop: start(), uses: 0 };
      clients.set(client, measured);
      measured.uses += 1;
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        measured.uses -= 1;
        if (measured.uses > 0) return;
        clients.delete(client);
        measured.stop();
      };
    },
  };
}
