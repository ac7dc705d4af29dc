import { setTimeout as sleep } from 'node:timers/promises';
import { liveBytes } from '../live-bytes.js';
import { alsoSentBy, LIBRARIES, openPeer, type Peer, type PeerName } from '../peers.js';
import { withWorkers } from '../processes.js';
import type { Row, Setting, Workload } from './workload.js';

/* What it costs to wait: 1,000 flows of one process on a key that somebody else holds. */

const WAITERS = 1_000;
const LOCK = 'bench:held';

let peer: Peer | undefined;
const calls: Promise<unknown>[] = [];

async function holdForLong(name: PeerName, url: string): Promise<void> {
  // Long enough to need no renewal meanwhile.
  peer = await openPeer(name, { url, leaseMs: 3_600_000 });
  await peer.acquire(LOCK);
}

async function openWaiting(name: PeerName, url: string): Promise<void> {
  peer = await openPeer(name, { url });
  await peer.flow('bench:warm-up', 200);
  // What is there once, however many wait.
  calls.push(peer.acquire(LOCK));
  await sleep(500);
}

/** Bytes of memory that one more waiter takes. */
async function wait(): Promise<number> {
  const before = liveBytes();
  for (let i = 0; i < WAITERS; i += 1) calls.push(peer!.acquire(LOCK));
  await sleep(2_000);
  return (liveBytes() - before) / WAITERS;
}

export const tasks = { holdForLong, openWaiting, wait };

function cost({ server, quick }: Setting, subject: PeerName): Promise<Row> {
  return withWorkers(2, async ([holder, waiting]) => {
    await server.clear();
    await holder!.run('holdForLong', subject, server.url);
    await waiting!.run('openWaiting', subject, server.url);
    const bytes = await waiting!.run('wait');
    const seconds = quick ? 2 : 11;
    const counts = await server.countCommands(alsoSentBy(subject), () => sleep(seconds * 1_000));
    return {
      workload: NAME,
      subject,
      figures: {
        'requests/s': (counts.requests - counts.pings) / seconds,
        'PINGs/s': counts.pings / seconds,
        'bytes/waiter': bytes,
      },
    };
  });
}

const NAME = '1,000 wait on a held key';

async function compare(setting: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  for (const subject of LIBRARIES) rows.push(await cost(setting, subject));
  return rows;
}

export const workloads: Workload[] = [{ name: NAME, run: compare }];
