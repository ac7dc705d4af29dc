import { hasCaller } from '../holding/left-holds.js';
import type { Tenure } from '../holding/tenure.js';

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
