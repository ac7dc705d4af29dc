/*
 * The holds of all clients of this process, also of clients of another copy of the package: `import` and `require` load
 * two copies. A client lists its holds only on request, so a section costs nothing here.
 */
import type { LeaseClock } from '../clock.js';
import type { LockedValues } from './lock-context.js';

/** One owner of a client, with its open holds. */
interface ProcessTenure {
  readonly owner: string;
  readonly protocol: { readonly key: string; readonly lockedValues?: LockedValues };
  readonly holds: readonly { readonly openedAt: number; readonly site: { toString(): string } | undefined }[];
}

/** A client, as other clients of the process see it. */
export interface ProcessClient {
  readonly clientId: string;
  readonly clock: LeaseClock;
  readonly lines: Iterable<{ readonly holders: Iterable<ProcessTenure> }>;
}

export interface ProcessHold {
  readonly clientId: string;
  readonly key: string;
  /** The owner id in Redis. */
  readonly owner: string;
  /** Absent: the whole key is locked. */
  readonly lockedValues: LockedValues | undefined;
  /** Time since the acquisition, in ms. */
  readonly age: number;
  /** The line of code that acquired the hold, if the client records call sites. */
  readonly site: { toString(): string } | undefined;
}

interface SharedState {
  readonly version: number;
  readonly clients: Set<() => Iterable<ProcessHold>>;
  /** Keys that a warning has named. */
  readonly warned: Set<string>;
}

/** Increase this version when a copy of another version could misread the shared state. */
const FORMAT_VERSION = 1;
const SHARED = Symbol.for('holdfast.process-holds');
const shared = sharedState();

export const { warned } = shared;

/** Returns a function that removes the client. */
export function addClient(client: ProcessClient): () => void {
  const holds = (): Iterable<ProcessHold> => holdsOf(client);
  shared.clients.add(holds);
  return () => void shared.clients.delete(holds);
}

export function processHolds(): ProcessHold[] {
  return [...shared.clients].flatMap((holds) => [...holds()]);
}

function* holdsOf({ clientId, clock, lines }: ProcessClient): Iterable<ProcessHold> {
  const now = clock.now();
  for (const { holders } of lines) {
    for (const { owner, protocol, holds } of holders) {
      const [first] = holds;
      if (first === undefined) continue;
      yield {
        clientId,
        key: protocol.key,
        owner,
        lockedValues: protocol.lockedValues,
        age: now - first.openedAt,
        site: first.site,
      };
    }
  }
}

/** Copies with different formats do not see each other's holds. Only warnings depend on these holds. */
function sharedState(): SharedState {
  const existing = (globalThis as { [SHARED]?: SharedState })[SHARED];
  if (existing?.version === FORMAT_VERSION) return existing;
  const value: SharedState = { version: FORMAT_VERSION, clients: new Set(), warned: new Set() };
  if (existing === undefined) Object.defineProperty(globalThis, SHARED, { value });
  return value;
}
