import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientOptions } from 'holdfast';
import { now } from '../monotonic.js';
import { openPeer, type PeerName } from '../peers.js';
import { Sample } from '../sample.js';

/* What a process does for the rows of hot locks. */

/** How a section is entered: by Holdfast with these options, by another library, or without a lock. */
export type HotSubject =
  { readonly options: ClientOptions } | { readonly peer: Exclude<PeerName, `holdfast ${string}`> } | 'no lock';

export interface HotShape {
  readonly flows: number;
  readonly sectionsEach: number;
  readonly holdMs: number;
}

/** Each flow has entered as often as the shape says. */
export interface HotBatch {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly longestWaitMs: number;
  /** ms from a call to its section, of some sections. */
  readonly waits: readonly number[];
  /** ms from a call to its end, of some sections. */
  readonly lengths: readonly number[];
}

type Enter = (work: () => unknown) => unknown;
let enter: Enter | undefined;

async function openHot(subject: HotSubject, url: string, name: string): Promise<void> {
  enter = await entering(subject, url, name);
}

async function entering(subject: HotSubject, url: string, name: string): Promise<Enter> {
  if (subject === 'no lock') return (work) => work();
  if ('peer' in subject) {
    const peer = await openPeer(subject.peer, { url });
    return (work) => peer.section(name, work);
  }
  const { createClient } = await import('holdfast');
  const client = createClient({ url, callSites: false, ...subject.options });
  await client.ready();
  const lock = client.getLock(name);
  return (work) => lock.withLock(work);
}

async function hotBatch({ flows, sectionsEach, holdMs }: HotShape): Promise<HotBatch> {
  const [waits, lengths] = [new Sample(), new Sample()];
  let [longestWaitMs, inside] = [0, 0];
  const leave = (): void => void (inside -= 1);
  const flow = async (): Promise<void> => {
    for (let i = 0; i < sectionsEach; i += 1) {
      const calledAt = performance.now();
      let wait = 0;
      await enter!(() => {
        wait = performance.now() - calledAt;
        inside += 1;
        if (inside > 1) throw new Error('two are inside');
        if (holdMs > 0) return sleep(holdMs).then(leave);
        leave();
      });
      longestWaitMs = Math.max(longestWaitMs, wait);
      waits.add(wait);
      lengths.add(performance.now() - calledAt);
    }
  };
  const startedAt = now();
  await Promise.all(Array.from({ length: flows }, flow));
  return { startedAt, endedAt: now(), longestWaitMs, waits: waits.values, lengths: lengths.values };
}

export const tasks = { openHot, hotBatch };
