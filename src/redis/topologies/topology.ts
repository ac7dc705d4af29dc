import type { CommandPort } from '../connections/attempt.js';
import type { ChannelSource } from '../connections/channel-source.js';

/** Where one command is to be sent. */
export interface Route {
  readonly connection: CommandPort;
  /** The slot is on its way there: the server takes the command only if it is told that we know. */
  readonly asking: boolean;
}

/** Which connection leads to the server that has a key. */
export interface CommandRoutes {
  /** `PUBLISH` or `SPUBLISH`; PUBLISH_OF_TOPOLOGY while a cluster has not yet been asked which it knows. */
  readonly publish: string;
  /**
   * By what is known now; it may not be ready. `confirmed`: the command's effect has to be on replicas as well, as far
   * as the `replicas` option asks for it.
   */
  connectionFor(key: string, confirmed: boolean): CommandPort | undefined;
  /** Resolves with the connection when it can be used; rejects at `until` (monotonic ms). */
  connect(key: string, confirmed: boolean, until: number): Promise<CommandPort>;
  /** What a server's error says about where to send the command instead. */
  redirected(error: Error, from: CommandPort, confirmed: boolean): Route | undefined;
}

/** All servers that a client talks to: one, one behind Sentinel, or a cluster. Nobody above knows which. */
export interface Topology extends CommandRoutes {
  readonly subscriber: ChannelSource;
  /** Keys of one group may go in one script. */
  slotGroup(key: string): number;
  /** @throws {InvalidArgumentError} The keys of this object cannot be in one slot, and the servers want them to be. */
  checkName(name: string): void;
  /** Resolves when every key can be reached; rejects at `until` (monotonic ms) or when a server refuses us. */
  whenReady(until: number): Promise<void>;
  close(): void;
}
