import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { RenewalScript } from './lock-protocol.js';
import type { ReaderReleases } from './reader-releases.js';

type RollArgs = readonly [waiters: string, own: string];

/** The arguments of a script that leaves the roll alone. */
export const NO_ROLL: RollArgs = ['', ''];

/** What the requests of every kind of lock and synchronizer need of the client. */
export interface ProtocolPort {
  readonly executor: ScriptExecutor;
  readonly clientId: string;
  readonly keyPrefix: string;
  /** The command with which scripts publish: `PUBLISH`, or `SPUBLISH` in a cluster with sharded channels. */
  readonly publish: string;
  /** The roll of a lock, and what the channels of its clients begin with. Absent: the scripts leave the rolls alone. */
  readonly rollOf?: (key: string) => RollArgs;
  /** The group of a key. One script can name several keys if they have the same group. */
  slotGroup(key: string): string | number;
  readonly readerReleases: ReaderReleases;
  readonly renewals: {
    readonly plain: RenewalScript;
    readonly readWrite: RenewalScript;
    readonly group: RenewalScript;
  };
}
