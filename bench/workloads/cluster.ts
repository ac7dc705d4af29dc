import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type Hold, type LockClient } from 'holdfast';
import { Cluster } from 'ioredis';
import { natMapOf } from '../../tests/support/proxy/nat-map.js';
import { RedisCluster } from '../../tests/support/servers/cluster.js';
import type { ServerAddress } from '../../tests/support/servers/servers.js';
import { until } from '../../tests/support/time/until.js';
import { now } from '../monotonic.js';
import { behindNetwork, withDelays } from '../network.js';
import { openPeer, type Peer } from '../peers.js';
import { withWorkers, type Worker } from '../processes.js';
import { median } from '../statistics.js';
import type { Row, Setting, Workload } from './workload.js';

/*
 * The same work on one server and on a cluster of three masters, in turns. Without replicas and with one for each
 * master, which then has to confirm every grant.
 */

/** Without `acks` as the client does if it is told nothing: one, while a replica is connected. */
type Where = { url: string } | { nodes: readonly ServerAddress[]; acks?: number; natMap?: NatMap };
type NatMap = ReturnType<typeof natMapOf>;

interface Work {
  readonly flows: number;
  readonly sectionsEach: number;
  /** Every flow has a lock of its own; otherwise all want one. */
  readonly distinct: boolean;
  readonly name: string;
}

let client: LockClient | undefined;
/** Kept: a hold that nothing refers to is warned of. */
const held: Hold[] = [];

async function openLocks(where: Where, lockWatchdogTimeout = 30_000): Promise<void> {
  const common = { callSites: false, lockWatchdogTimeout };
  if ('url' in where) {
    client = createClient({ url: where.url, ...common });
  } else {
    const { acks, natMap } = where;
    const redis = new Cluster([...where.nodes], {
      lazyConnect: true,
      redisOptions: { replyMapping: 'legacy' },
      ...(natMap !== undefined && { natMap }),
    });
    client = createClient({ redis, ...(acks !== undefined && { replicas: { acks } }), ...common });
  }
  await client.ready();
}

async function enterSections({ flows, sectionsEach, distinct, name }: Work): Promise<{ from: number; until: number }> {
  const from = now();
  const flow = async (_: unknown, at: number): Promise<void> => {
    const lock = client!.getLock(distinct ? `${name}:${at}` : name);
    for (let i = 0; i < sectionsEach; i += 1) await lock.withLock(() => undefined);
  };
  await Promise.all(Array.from({ length: flows }, flow));
  return { from, until: now() };
}

const rawPeers = new Map<string, Promise<Peer>>();

/** A flow of bare scripts at one server. */
interface RawFlow {
  readonly url: string;
  readonly key: string;
}

async function enterRaw(flows: readonly RawFlow[], sectionsEach: number): Promise<{ from: number; until: number }> {
  for (const { url } of flows) {
    if (!rawPeers.has(url)) rawPeers.set(url, openPeer('raw scripts', { url }));
    await rawPeers.get(url);
  }
  const from = now();
  await Promise.all(flows.map(async ({ url, key }) => (await rawPeers.get(url)!).flow(key, sectionsEach)));
  return { from, until: now() };
}

async function holdLocks(count: number): Promise<void> {
  const take = async (from: number): Promise<void> => {
    for (let i = from; i < count; i += 200) held.push(await client!.getLock(`bench:held:${i}`).acquire());
  };
  await Promise.all(Array.from({ length: 200 }, (_, from) => take(from)));
}

/** What the client uses while it only renews. */
async function sitStill(ms: number): Promise<{ cpuSeconds: number; held: number }> {
  const before = process.cpuUsage();
  await sleep(ms);
  const { user, system } = process.cpuUsage(before);
  return { cpuSeconds: (user + system) / 1e6, held: client!.holds().length };
}

/** Tries until it is inside; resolves with when that was. */
async function enterAgain(name: string): Promise<number> {
  for (;;) {
    const entered = await client!
      .getLock(name)
      .withLock({ waitTime: 200 }, now)
      .catch(() => undefined);
    if (entered !== undefined) return entered;
  }
}

export const tasks = { openLocks, enterSections, enterRaw, holdLocks, sitStill, enterAgain };

interface Subject {
  readonly name: string;
  readonly where: Where;
}

const nodesOf = (cluster: RedisCluster): ServerAddress[] => cluster.servers.map(({ address }) => ({ ...address }));

/** Behind a network, each node has a proxy of its own. */
async function withNatMap<T>(
  clusters: readonly RedisCluster[],
  isDelayed: boolean,
  work: (behind: { natMap?: NatMap }) => Promise<T>,
): Promise<T> {
  if (!isDelayed) return work({});
  const servers = clusters.flatMap((cluster) => cluster.servers);
  return withDelays(
    servers.map(({ url }) => url),
    (ways) => {
      const proxies = ways.map((way) => new URL(way)).map(({ hostname, port }) => ({ host: hostname, port: +port }));
      return work({ natMap: natMapOf(servers, proxies) });
    },
  );
}

/** With the cluster it needs, which ends with the work. */
async function withSubjects<T>(
  { server }: Setting,
  work: (subjects: readonly Subject[], clusters: readonly [RedisCluster, RedisCluster]) => Promise<T>,
): Promise<T> {
  const clusters = [await RedisCluster.start({ replicas: 0 }), await RedisCluster.start()] as const;
  try {
    const [bare, replicated] = clusters;
    return await withNatMap(clusters, server.isDelayed, (behind) => {
      const subjects = [
        { name: 'one server', where: { url: server.url } },
        { name: 'cluster of 3, acks 0', where: { nodes: nodesOf(bare), acks: 0, ...behind } },
        { name: 'cluster of 3 with replicas, acks 1', where: { nodes: nodesOf(replicated), acks: 1, ...behind } },
      ];
      return work(subjects, clusters);
    });
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.stop()));
  }
}

async function rateOf(workers: readonly Worker[], work: Work): Promise<number> {
  const rounds = await Promise.all(workers.map((worker) => worker.run('enterSections', work)));
  const ms = Math.max(...rounds.map(({ until }) => until)) - Math.min(...rounds.map(({ from }) => from));
  return (workers.length * work.flows * work.sectionsEach * 1_000) / ms;
}

function compare(setting: Setting, workload: string, processes: number, work: Work): Promise<Row[]> {
  return withSubjects(setting, (subjects) =>
    withWorkers(processes * subjects.length, async (workers) => {
      const teams = subjects.map((subject, i) => ({
        subject,
        workers: workers.slice(i * processes, (i + 1) * processes),
        rates: [] as number[],
      }));
      for (const { subject, workers: team } of teams)
        await Promise.all(team.map((worker) => worker.run('openLocks', subject.where)));
      // The first round only warms up.
      for (let round = 0; round <= (setting.quick ? 3 : 9); round += 1) {
        for (const team of teams) {
          const rate = await rateOf(team.workers, work);
          if (round > 0) team.rates.push(rate);
        }
      }
      const single = teams[0]!.rates;
      return teams.map(({ subject, rates }) => ({
        workload,
        subject: subject.name,
        figures: {
          'sections/s': median(rates),
          'of one server': median(rates.map((rate, round) => rate / single[round]!)),
        },
      }));
    }),
  );
}

/** The same flows with two bare scripts for a section, sent by a client that does nothing else: at one server, and spread over three. */
async function scriptsAlone(setting: Setting, workload: string, work: Work): Promise<Row> {
  const cluster = await RedisCluster.start({ replicas: 0 });
  try {
    const alone: RawFlow[] = [];
    const spread: RawFlow[] = [];
    for (let flow = 0; flow < work.flows; flow += 1) {
      const key = `${work.name}:${flow}`;
      alone.push({ url: setting.server.url, key });
      spread.push({ url: (await cluster.shardOf(key)).master.url, key });
    }
    return await withWorkers(1, async ([worker]) => {
      const rateOf = async (flows: readonly RawFlow[]): Promise<number> => {
        const { from, until } = await worker!.run('enterRaw', flows, work.sectionsEach);
        return (work.flows * work.sectionsEach * 1_000) / (until - from);
      };
      const rates: { alone: number; spread: number }[] = [];
      for (let round = 0; round <= (setting.quick ? 3 : 9); round += 1) {
        const rate = { alone: await rateOf(alone), spread: await rateOf(spread) };
        if (round > 0) rates.push(rate);
      }
      return {
        workload,
        subject: 'two bare scripts',
        figures: {
          'sections/s': median(rates.map(({ spread }) => spread)),
          'of one server': median(rates.map(({ alone, spread }) => spread / alone)),
        },
      };
    });
  } finally {
    await cluster.stop();
  }
}

function renewals(setting: Setting, workload: string, locks: number): Promise<Row[]> {
  const watchdogMs = setting.quick ? 6_000 : 30_000;
  return withSubjects(setting, async (subjects, [bare, replicated]) => {
    const rows: Row[] = [];
    const clusters = [undefined, bare, replicated];
    for (const [i, subject] of subjects.entries()) {
      const counted = async (): Promise<number> => {
        const servers = await clusters[i]?.masters();
        if (!servers) return setting.server.countSent();
        const stats = await Promise.all(servers.map((server) => server.commandStats()));
        return stats.reduce((sum, each) => sum + (each.get('evalsha') ?? 0), 0);
      };
      rows.push(
        await withWorkers(1, async ([worker]) => {
          await worker!.run('openLocks', subject.where, watchdogMs);
          await worker!.run('holdLocks', locks);
          const before = await counted();
          const { cpuSeconds, held } = await worker!.run('sitStill', 2 * watchdogMs);
          return {
            workload,
            subject: subject.name,
            figures: {
              'requests per tick': ((await counted()) - before) / 6,
              'client CPU s per tick': cpuSeconds / 6,
              'locks lost': locks - held,
            },
          };
        }),
      );
    }
    return rows;
  });
}

/** From the kill of a master to the first section on the replica that took over. */
async function failover(setting: Setting, workload: string): Promise<Row[]> {
  const cluster = await RedisCluster.start({ nodeTimeoutMs: 2_000 });
  try {
    return await withWorkers(1, async ([worker]) => {
      // With `acks: 1` nobody would be inside before the dead master is back, as the new one's replica.
      await worker!.run('openLocks', { nodes: nodesOf(cluster) });
      const rounds: { promoted: number; entered: number }[] = [];
      for (let round = 0; round < (setting.quick ? 2 : 5); round += 1) {
        const name = `bench:failover:${round}`;
        await worker!.run('enterAgain', name);
        // One that has just come back is not known to all at once.
        await until(async () => (await cluster.shardOf(name)).replicas.length > 0, 'its master has a replica');
        const { master, replicas } = await cluster.shardOf(name);
        const killedAt = now();
        await master.kill9();
        const entered = worker!.run('enterAgain', name);
        entered.catch(() => undefined); // looked at below
        await cluster.promoted(replicas[0]!);
        rounds.push({ promoted: now() - killedAt, entered: (await entered) - killedAt });
        await cluster.heal();
      }
      return [
        {
          workload,
          subject: 'cluster of 3 with replicas, node time-out 2 s',
          figures: {
            'replica promoted after ms': median(rounds.map(({ promoted }) => promoted)),
            'first section after ms': median(rounds.map(({ entered }) => entered)),
            'later by ms': median(rounds.map(({ promoted, entered }) => entered - promoted)),
          },
        },
      ];
    });
  } finally {
    await cluster.stop();
  }
}

const sections = (name: string, processes: number, work: Omit<Work, 'name'>): Workload => ({
  name,
  async run(setting) {
    const rows = await compare(setting, name, processes, { ...work, name });
    if (!work.distinct) return rows;
    return [...rows, await scriptsAlone(setting, name, { ...work, name })];
  },
});

export const workloads: Workload[] = [
  sections('cluster: 1 flow', 1, { flows: 1, sectionsEach: 1_500, distinct: true }),
  sections('cluster: 100 flows, distinct keys', 1, { flows: 100, sectionsEach: 60, distinct: true }),
  sections('cluster: 1 x 50 flows on one key', 1, { flows: 50, sectionsEach: 60, distinct: false }),
  sections('cluster: 4 x 10 flows on one key', 4, { flows: 10, sectionsEach: 40, distinct: false }),
  {
    name: 'cluster: 10,000 locks held',
    run: (setting) => renewals(setting, 'cluster: 10,000 locks held', 10_000),
  },
  { name: 'cluster: a master is killed', run: (setting) => failover(setting, 'cluster: a master is killed') },
  // Fewer sections, each of which takes longer.
  ...[
    sections('cluster: 1 x 50 flows on one key', 1, { flows: 50, sectionsEach: 10, distinct: false }),
    sections('cluster: 4 x 10 flows on one key', 4, { flows: 10, sectionsEach: 10, distinct: false }),
  ].map(behindNetwork),
];
