/* Reads the objects of several names at one server, with the processes of the owners and the waiters. */
import { ClientClosedError, RefusedError } from '../errors.js';
import {
  fairQueueKey,
  latchChannel,
  lockChannel,
  readWriteChannel,
  semaphoreChannel,
  takenPermitsKey,
  tokenKey,
} from '../redis/keys.js';
import type { ScriptExecutor } from '../redis/requests/script-executor.js';
import { inspect, inspectAll, type InspectReply } from '../redis/scripts/object.js';
import { inspectionOf, type Inspection, type OwnerInspection } from './inspection.js';
import { clientIdOf, type OwnerProcess } from './owner-process.js';
import type { Pace, Server, Servers } from './servers.js';

/** An owner of a lock, with its process. */
export interface ListedOwner extends OwnerInspection {
  /**
   * The process of the owner; `undefined` if it is unknown. That is so for an owner of Redisson, whose connections do
   * not carry the id of its client (`Redisson#getId()`), for a process that is no longer connected, and where Redis
   * refuses `CLIENT`.
   */
  readonly process: OwnerProcess | undefined;
}

/** The options of {@link LockClient.inspect}. */
export interface InspectOptions {
  /** Whether to find the processes of the owners and the number of waiting clients, too. @defaultValue `false` */
  processes?: boolean | undefined;
}

/** What {@link LockClient.list} yields for each name: its {@link Inspection}, with processes and waiters. */
export interface ListEntry extends Omit<Inspection, 'owners'> {
  readonly owners: readonly ListedOwner[];
  /**
   * Number of clients with calls that wait. A client counts once, however many of its calls wait. Another client counts
   * for up to 0.6 s after the last of them, because it keeps its subscription for a moment. Of a fair lock: the length of
   * its queue. `undefined` if Redis refuses the command.
   */
  readonly waiters: number | undefined;
}

/** A list entry of which only a part may have been read. */
export interface ReadEntry extends ListEntry {
  /** How much there is, if only a part was asked for. */
  readonly counts?: {
    /** `undefined`: unknown, and more than were read. */
    readonly owners: number | undefined;
    readonly queue: number;
    readonly permits: number;
  };
}

/** The services of the client that inspections use. */
export interface Inspecting {
  readonly client: { readonly closed: boolean };
  readonly clientId: string;
  readonly keyPrefix: string;
  readonly executor: ScriptExecutor;
  readonly servers: Servers;
  /** Channels that the own client is still subscribed to although none of its calls waits. */
  readonly idleChannels: () => ReadonlySet<string>;
  /** Called before each command, also by `servers`. */
  readonly pace?: Pace;
  /** Number of owners, waiters and permits that are read of each name. Absent: all. */
  readonly most?: number;
}

/** The keys that an inspection reads. */
const keysOf = (key: string): [string, string, string, string] => [
  key,
  fairQueueKey(key),
  tokenKey(key),
  takenPermitsKey(key),
];

/** Reads one name, at one moment. */
export async function inspectName({ executor, keyPrefix, clientId }: Inspecting, name: string): Promise<Inspection> {
  return inspectionOf(name, clientId, await executor.ask(inspect, keysOf(keyPrefix + name), [0]));
}

/** Reads one name, with the processes and the waiters of a list entry. */
export async function describeName(inspecting: Inspecting, name: string): Promise<ListEntry> {
  const found = await inspectName(inspecting, name);
  const server = inspecting.servers.of(inspecting.keyPrefix + name);
  if (server === undefined) return withoutProcesses(found);
  const [entry] = await complete(inspecting, server, [{ found }]);
  return entry ?? withoutProcesses(found);
}

const withoutProcesses = (found: Inspection): ListEntry => ({
  ...found,
  owners: found.owners.map((owner) => ({ ...owner, process: undefined })),
  waiters: undefined,
});

/** Number of names that one script reads. Redis serves no other client during that time. */
const BATCH = 125;
/** Number of characters of these names. Each name is part of several keys. */
const BATCH_CHARACTERS = 65_536;

/** The names in parts for `describe`. A part has at least one name. */
export function batchesOf(names: readonly string[]): string[][] {
  const batches: string[][] = [];
  let left = 0;
  for (const name of names) {
    const last = batches.at(-1);
    left -= name.length;
    if (last !== undefined && last.length < BATCH && left >= 0) last.push(name);
    else {
      batches.push([name]);
      left = BATCH_CHARACTERS - name.length;
    }
  }
  return batches;
}

/**
 * The entries of the names that are in use. A name that the user of the connection may not read is left out. So is a
 * number that nothing but its value connects with a semaphore or latch: a number of the application must stay its own.
 * `isKnown`: whether the name of a number is known as that of a semaphore or latch.
 */
export async function describe(
  inspecting: Inspecting,
  server: Server,
  names: readonly string[],
  isKnown: (name: string) => boolean,
): Promise<ReadEntry[]> {
  const { clientId, most } = inspecting;
  const replies = await read(inspecting, server, names);
  const found = names.flatMap((name, at) => {
    const reply = replies[at];
    if (reply === undefined) return [];
    const inspection = inspectionOf(name, clientId, reply);
    return { found: inspection, ...(most !== undefined && { counts: countsOf(inspection, reply) }) };
  });
  const entries = await complete(
    inspecting,
    server,
    found.filter((each) => isInUse(each.found)),
  );
  return entries.filter(({ name, kind, waiters = 0 }) => kind !== 'counter' || waiters > 0 || isKnown(name));
}

function countsOf({ kind, owners }: Inspection, { content, sizes }: InspectReply): ReadEntry['counts'] {
  const [fields, queue, permits] = sizes;
  const isWhole = 2 * fields <= content.length;
  // A group has several fields for each value.
  const all = kind === 'group' ? undefined : fields - (kind === 'read-write' ? 1 : 0);
  return { owners: isWhole || owners.length === 0 ? owners.length : all, queue, permits };
}

/** Adds the processes of the owners and the waiters. */
async function complete(
  inspecting: Inspecting,
  server: Server,
  inspected: readonly { readonly found: Inspection; readonly counts?: ReadEntry['counts'] }[],
): Promise<ReadEntry[]> {
  if (inspected.length === 0) return [];
  const all = inspected.map(({ found }) => found);
  const [clients, waiters] = await Promise.all([server.clients(), waitersOf(inspecting, server, all)]);
  return inspected.map(({ found, counts }, at) => ({
    ...found,
    owners: found.owners.map((owner) => ({ ...owner, process: clients.get(clientIdOf(owner.owner)) })),
    waiters: found.kind === 'fair' ? (counts?.queue ?? found.queue.length) : waiters?.[at],
    ...(counts !== undefined && { counts }),
  }));
}

/** The names `x` and `{x}` share a queue and a set of permits. Where neither has a key of its own, the list has `x`. */
const isInUse = ({ name, kind, type, owners, queue }: Inspection): boolean =>
  type === 'none'
    ? queue.length > 0 && !/^\{[^{}]*\}$/.test(name)
    : kind === 'counter' || kind === 'permits' || owners.length > 0 || queue.length > 0;

async function read(
  { executor, keyPrefix, pace, most = 0 }: Inspecting,
  server: Server,
  names: readonly string[],
): Promise<(InspectReply | undefined)[]> {
  const [first, ...others] = names.map((name) => keysOf(keyPrefix + name));
  if (first === undefined) return [];
  try {
    return await server.ask(inspectAll, first, [most, ...others.flat()]);
  } catch (error) {
    if (error instanceof ClientClosedError) throw error;
    // A key may be forbidden, or its slot may have left this server. One name at a time, the others are read.
    const each = names.map(async (name) => {
      await pace?.();
      return executor.ask(inspect, keysOf(keyPrefix + name), [most]).catch(ifKeyRefused);
    });
    return Promise.all(each);
  }
}

/** How often the subscribers are counted, while subscriptions of this client end. */
const MOST_COUNTS = 3;

/** For each inspection the number of clients that wait: the subscribers of its channels, without the own client if it is idle. */
async function waitersOf(
  { keyPrefix, idleChannels }: Inspecting,
  server: Server,
  found: readonly Inspection[],
): Promise<readonly number[] | undefined> {
  const channels = found.map((inspection) => channelsOf(inspection, keyPrefix + inspection.name));
  const asked = channels.flat();
  let idle = idleChannels();
  let counts: readonly number[] | undefined;
  for (let again = MOST_COUNTS; again > 0; again -= 1) {
    const before = idle;
    counts = await server.subscribers(asked).catch(ifRefused(undefined));
    idle = idleChannels();
    // The server may or may not have counted a subscription of this client that has ended meanwhile.
    if (asked.every((channel) => before.has(channel) === idle.has(channel))) break;
  }
  let at = 0;
  const waiting = (channel: string): number => Math.max(0, (counts?.[at++] ?? 0) - (idle.has(channel) ? 1 : 0));
  return counts && channels.map((own) => own.reduce((sum, channel) => sum + waiting(channel), 0));
}

function channelsOf({ kind }: Inspection, key: string): string[] {
  if (kind === 'read-write') return [readWriteChannel(key)];
  if (kind === 'permits') return [semaphoreChannel(key)];
  if (kind === 'counter') return [semaphoreChannel(key), latchChannel(key)];
  return [lockChannel(key)];
}

/** Rethrows every error except that of a key that the user of the connection may not read. Other names may be readable. */
function ifKeyRefused(error: unknown): undefined {
  if (error instanceof RefusedError && error.rule?.startsWith('+') !== true) return undefined;
  throw error;
}

/** Rethrows every error except that of a server that refuses the command. */
export const ifRefused =
  <T>(value: T) =>
  (error: unknown): T => {
    if (error instanceof RefusedError) return value;
    throw error;
  };
