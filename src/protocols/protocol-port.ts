import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { RenewalScript } from './lock-protocol.js';
import type { ReaderReleases } from './reader-releases.js';

/** What the requests of every kind of lock and synchronizer need of the client. */
export interface ProtocolPort {
  readonly executor: ScriptExecutor;
  readonly clientId: string;
  readonly keyPrefix: string;
  /** The command with which scripts publish: `PUBLISH`, or `SPUBLISH` in a cluster with sharded channels. */
  readonly publish: string;
  /** The group of a key. One script can name several keys if they have the same group. */
  slotGroup(key: string): string | number;
  readonly readerReleases: ReaderReleases;
  readonly renewals: {
    readonly plain: RenewalScript;
    readonly readWrite: RenewalScript;
    readonly group: RenewalScript;
  };
}
