import type { MonitorLine } from '../../support/servers/monitor-log.js';
import type { ServerAddress } from '../../support/servers/servers.js';

/**
 * A line of MONITOR with its server. Some commands are from the bench: SYNCED (the server has the state of the server
 * with this number), STATE (the server has this state: lock, owner or nothing, ms, and so on) and LEAVES (the slot of
 * this lock leaves the server).
 */
export interface SeenLine extends MonitorLine {
  readonly node: number;
}

/** The source of the commands that a server runs as a replica: its master has run them before. */
export const FROM_MASTER = 'master';

/** A replica's lines come from the port that its master listens at, which no client has. */
export function seenAt(line: MonitorLine, node: number, servers: readonly ServerAddress[]): SeenLine {
  const fromServer = servers.some(({ host, port }) => line.source === `${host}:${port}`);
  return { ...line, node, source: fromServer ? FROM_MASTER : line.source };
}
