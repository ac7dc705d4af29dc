import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import type { RenewalScript } from './lock-protocol.js';

/** How the client reaches Redis, for every kind of lock. */
export interface ProtocolPort {
  readonly executor: ScriptExecutor;
  readonly clientId: string;
  readonly keyPrefix: string;
  /** The publishing command, for scripts. */
  readonly publish: string;
  /** Keys of one group may go in one script. */
  slotGroup(key: string): string | number;
  readonly renewals: {
    readonly plain: RenewalScript;
    readonly readWrite: RenewalScript;
    readonly group: RenewalScript;
  };
}
