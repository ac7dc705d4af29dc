import { alsoSentBy, openPeer, SUBJECTS, type Peer, type PeerName } from '../peers.js';
import { canPin, pin, unpin } from '../one-core.js';
import { Worker } from '../processes.js';
import { median } from '../statistics.js';
import { warmUpSections } from '../warm-up.js';
import type { Row, Setting, Workload } from './workload.js';

/*
 * Sections that nobody else wants. The floor is timed in the same process, after the import: subject and raw scripts
 * take turns, slice by slice, and each pair gives one ratio.
 */

/** The shorter the turns, the less a load from elsewhere falls on one side alone. */
const SLICES = 10;

interface PairsOrder {
  readonly url: string;
  readonly subject: PeerName;
  readonly flows: number;
  /** Of each side, before the first pair. */
  readonly warmUp: number;
  readonly pairs: number;
  /** How long one side of a pair lasts, by the speed of the raw scripts. */
  readonly sideMs: number;
}

interface Pair {
  readonly raw: number;
  readonly subject: number;
}

/** Sections per second of both, pair by pair. */
async function timePairs({ url, subject: name, flows, warmUp, pairs, sideMs }: PairsOrder): Promise<Pair[]> {
  const subject = await openPeer(name, { url, callSites: false });
  const raw = await openPeer('raw scripts', { url });
  let sectionsEach = Math.ceil(warmUp / 2 / flows);
  const time = async (peer: Peer): Promise<number> => {
    const start = performance.now();
    await Promise.all(Array.from({ length: flows }, (_, flow) => peer.flow(`bench:${name}:${flow}`, sectionsEach)));
    return performance.now() - start;
  };
  let warmRawMs = 0;
  for (const peer of [raw, subject, subject, raw]) {
    const ms = await time(peer);
    if (peer === raw) warmRawMs = ms;
  }
  sectionsEach = Math.ceil((sectionsEach * sideMs) / SLICES / warmRawMs);
  const timed: Pair[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    let [rawMs, subjectMs] = [0, 0];
    for (let slice = 0; slice < SLICES; slice += 1) {
      // Whoever comes second finds the machine as the first has left it.
      if (slice % 2 === 0) rawMs += await time(raw);
      subjectMs += await time(subject);
      if (slice % 2 === 1) rawMs += await time(raw);
    }
    const done = flows * sectionsEach * SLICES * 1_000;
    timed.push({ raw: done / rawMs, subject: done / subjectMs });
  }
  await subject.close();
  await raw.close();
  return timed;
}

/** For counting what they send: a flow of its own, after a first section has loaded the scripts. */
async function runFlow(url: string, name: PeerName, sections: number): Promise<void> {
  opened ??= await openPeer(name, { url, callSites: false });
  await opened.flow('bench:counted', sections);
}
let opened: Peer | undefined;

export const tasks = { timePairs, runFlow };

async function timedRow(
  { server, quick }: Setting,
  workload: string,
  subject: PeerName,
  flows: number,
  oneCore: boolean,
): Promise<Row> {
  await using worker = new Worker();
  if (oneCore) pin(worker.pid);
  const length = quick ? { pairs: 3, sideMs: 100 } : { pairs: 9, sideMs: 400 };
  const order = { url: server.url, subject, flows, warmUp: warmUpSections(quick), ...length };
  const pairs = await worker.run('timePairs', order);
  return {
    workload,
    subject,
    figures: {
      'sections/s': median(pairs.map((pair) => pair.subject)),
      'raw sections/s': median(pairs.map((pair) => pair.raw)),
      'of raw': median(pairs.map((pair) => pair.subject / pair.raw)),
    },
  };
}

async function timed(setting: Setting, workload: string, flows: number, oneCore = false): Promise<Row[]> {
  const rows: Row[] = [];
  const serverPid = await setting.server.pid();
  if (oneCore) pin(serverPid);
  try {
    for (const subject of SUBJECTS) rows.push(await timedRow(setting, workload, subject, flows, oneCore));
  } finally {
    if (oneCore) unpin(serverPid);
  }
  return rows;
}

/**
 * One flow keeps one process busy at a time. On two cores each of its messages first has to wake a core that sleeps,
 * for as long as the machine takes, which may be more than everything that is to be compared here.
 */
async function timedOnOneCore(setting: Setting, workload: string): Promise<Row[]> {
  return timed(setting, workload, 1, true);
}

async function counted({ server }: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of ['raw scripts', ...SUBJECTS] as const) {
    await using worker = new Worker();
    await worker.run('runFlow', server.url, subject, 1);
    const sections = 1_000;
    const counts = await server.countCommands(alsoSentBy(subject), () =>
      worker.run('runFlow', server.url, subject, sections),
    );
    rows.push({
      workload: 'commands per section, uncontended',
      subject,
      figures: { requests: counts.requests / sections, 'commands run': counts.commands / sections },
    });
  }
  return rows;
}

const ON_ONE_CORE = '1 flow, all on one core';

export const workloads: Workload[] = [
  { name: '1 flow', run: (setting) => timed(setting, '1 flow', 1) },
  ...(canPin() ? [{ name: ON_ONE_CORE, run: (setting: Setting) => timedOnOneCore(setting, ON_ONE_CORE) }] : []),
  { name: '100 flows, distinct keys', run: (setting) => timed(setting, '100 flows, distinct keys', 100) },
  { name: 'commands per section, uncontended', run: counted },
];
