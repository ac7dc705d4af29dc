import type { CommandPort } from '../connections/attempt.js';
import type { ChannelSource } from '../connections/channel-source.js';

/** The destination of one command. */
export interface Route {
  readonly connection: CommandPort;
  /** The server imports the slot: it runs the command only after ASKING. */
  readonly asking: boolean;
}

/** Finds the connection to the server that owns a key. */
export interface CommandRoutes {
  /** `PUBLISH` or `SPUBLISH`, or PUBLISH_COMMAND until a cluster has replied which one it supports. */
  readonly publish: string;
  /**
   * The connection by the current map. It may not be ready. `confirmed`: replicas must confirm the effect of the
   * command, if the `replicas` option says so.
   */
  connectionFor(key: string, confirmed: boolean): CommandPort | undefined;
  /** Resolves with the connection when it is ready. Rejects at `until` (monotonic ms). */
  connect(key: string, confirmed: boolean, until: number): Promise<CommandPort>;
  /** The new destination of a command if `error` redirects it, or else `undefined`. */
  redirected(error: Error, from: CommandPort, confirmed: boolean): Route | undefined;
}

export interface Masters {
  /** `address`: `undefined` where the client has one server. */
  readonly ready: readonly { readonly connection: CommandPort; readonly address: string | undefined }[];
  /** Servers that are not ready, and slots that no server has, as a part of a sentence. */
  readonly missing: readonly string[];
}

/** The servers of a client: a single server, a master behind Sentinel, or a cluster. Callers do not know which. */
export interface Topology extends CommandRoutes {
  readonly isCluster: boolean;
  /** Number of replicas that must confirm a grant, if replicas are connected; 0 if none must. */
  readonly acks: number;
  readonly subscriber: ChannelSource;
  /** One script can use several keys only if they have the same slot group. */
  slotGroup(key: string): number;
  /** @throws {InvalidArgumentError} In a cluster: the keys of the object would not be in one slot. */
  checkName(name: string): void;
  /** Resolves when every key is reachable. Rejects at `until` (monotonic ms), or when a server rejects the client. */
  whenReady(until: number): Promise<void>;
  /**
   * Resolves with the servers that have keys, when all of them are ready; at `until` (monotonic ms) with those that are.
   * Rejects as `whenReady` if none is.
   */
  masters(until: number): Promise<Masters>;
  close(): void;
}
