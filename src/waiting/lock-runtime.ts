import type { LeaseClock } from '../clock.js';
import type { EventSource } from '../events.js';
import type { ResolvedOptions } from '../options.js';
import type { CallSite } from '../ownership/call-site.js';
import type { Compensations } from '../holding/compensations.js';
import type { EntryRegistry } from './wait-lines.js';
import type { Lanes } from '../synchronizers/lanes.js';
import type { LongWaits } from './long-wait.js';
import type { Watchdog } from '../holding/watchdog.js';

/** What the mechanisms of one client share. */
export interface LockRuntime {
  /** Redisson's client id: a random UUID. */
  readonly clientId: string;
  /** Which server or cluster, as far as the configuration says. */
  readonly server: string;
  readonly options: ResolvedOptions;
  readonly clock: LeaseClock;
  readonly events: EventSource;
  readonly entries: EntryRegistry;
  readonly watchdog: Watchdog;
  readonly compensations: Compensations;
  readonly lanes: Lanes;
  readonly longWaits: LongWaits;
  readonly closed: boolean;
  /** `<client id>:<number>`, never given twice. */
  newOwner(): string;
  /** The line that called `above`, if call sites are kept. */
  callSite(above: (...args: never[]) => unknown): CallSite | undefined;
}
