import { buildWorker, missingTools } from '../tests/interop/redisson/java-build.mjs';
import { Jvm, REDISSON_VERSIONS, type JvmObject } from '../tests/interop/redisson/jvm.js';
import { warmUpSections } from './warm-up.js';

/** Processes with the real Redisson, kept warm for all workloads of a run. */
const VERSION = REDISSON_VERSIONS[0];
export const WARM_UP_FLOWS = 8;

const running: Jvm[] = [];
const opened = new Map<Jvm, Set<string>>();
const warm = new Map<Jvm, Set<string>>();
let built = false;

export const REDISSON = `redisson ${VERSION}`;

/** What is missing for measuring Redisson; nothing: it can be. */
export function missingForRedisson(): string[] {
  return missingTools();
}

/**
 * @param urls  of one server each; the first client is `client`, the others `server-1` and so on
 * @param first  another name of the first client, for an address of its own
 */
export async function redissons(count: number, urls: readonly string[], first = 'client'): Promise<Jvm[]> {
  if (!built) buildWorker(VERSION);
  built = true;
  while (running.length < count) running.push(await Jvm.start({ version: VERSION }));
  const jvms = running.slice(0, count);
  for (const jvm of jvms) {
    const known = opened.get(jvm) ?? new Set();
    opened.set(jvm, known);
    for (const [i, url] of urls.entries()) {
      const client = i === 0 ? first : `server-${i}`;
      if (known.has(client)) continue;
      await jvm.createClient({ client, addresses: [url] });
      known.add(client);
    }
  }
  return jvms;
}

const halvesOf = (kind: string): string[] => (kind === 'read-write' ? ['read', 'write'] : [kind]);

/** Of each flow, and of each half of a read-write lock. */
export function warmUpSectionsEach(kind: string, quick: boolean): number {
  return warmUpSections(quick) / WARM_UP_FLOWS / halvesOf(kind).length;
}

/** Runs what is to be measured so many times, once for each kind of lock. */
export async function warmUp(jvms: readonly Jvm[], kind: string, quick: boolean, client = 'client'): Promise<void> {
  for (const jvm of jvms) {
    const known = warm.get(jvm) ?? new Set();
    warm.set(jvm, known);
    if (known.has(kind)) continue;
    known.add(kind);
    const sections = warmUpSectionsEach(kind, quick);
    for (const each of halvesOf(kind)) {
      const object: JvmObject = { kind: each, name: 'bench:warm-up' };
      await jvm.order({ op: 'flows', client, object, flows: WARM_UP_FLOWS, sections });
    }
  }
}

/** The name of the client in each JVM: one for the server, and one for the same server behind a network. */
export const clientFor = ({ isDelayed }: { readonly isDelayed: boolean }): string => (isDelayed ? 'delayed' : 'client');

export async function closeRedissons(): Promise<void> {
  await Promise.all(running.splice(0).map((jvm) => jvm.kill9()));
}
