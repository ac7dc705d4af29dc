import { countOpen, hasCaller } from '../holding/left-holds.js';
import type { Tenure } from '../holding/tenure.js';
import type { WaitLines } from '../waiting/wait-lines.js';
import type { Mechanisms } from './wiring.js';

/** An open lock of a client, as `client.holds()` lists it. */
export interface HoldInfo {
  readonly lockName: string;
  /** The owner id in Redis: `<client id>:<number>`. */
  readonly owner: string;
  /** Number of open holds of this owner. */
  readonly holdCount: number;
  /** Time since the outermost of the holds was opened, in milliseconds. */
  readonly age: number;
  /** The line of code that opened the outermost hold; `undefined` if `callSites` is off. */
  readonly callSite: string | undefined;
}

/** @internal */
export const holdInfoOf = ({ protocol, owner, holds }: Tenure, now: number): HoldInfo => {
  const open = holds.filter(hasCaller);
  return {
    lockName: protocol.name,
    owner,
    holdCount: open.length,
    age: Math.round(now - (open[0]?.openedAt ?? now)),
    callSite: open[0]?.site?.toString(),
  };
};

/** @internal Every tenure of a client that has a lock now. */
export function* tenuresOf(lines: WaitLines): Iterable<Tenure> {
  for (const line of lines) yield* line.holders;
}

/** @internal The tenures of a client with an open hold. Reports the losses that are due. */
function heldTenures({ clock, lines }: Pick<Mechanisms, 'clock' | 'lines'>): Tenure[] {
  const tenures = [...tenuresOf(lines)];
  const now = clock.now();
  for (const tenure of tenures) tenure.lease.check(now);
  return tenures.filter(({ holds }) => countOpen(holds) > 0);
}

/** @internal The open locks of a client. */
export function holdsOf(mechanisms: Pick<Mechanisms, 'clock' | 'lines'>): HoldInfo[] {
  return heldTenures(mechanisms).map((tenure) => holdInfoOf(tenure, mechanisms.clock.now()));
}
