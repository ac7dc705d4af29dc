import type { MonitorLine } from '../../support/servers/monitor-log.js';
import type { ServerAddress } from '../../support/servers/servers.js';

/**
 * A line of MONITOR, and which server ran it. Some commands are the bench's own: SYNCED (it has what the server of this
 * number has), STATE (it has this: lock, owner or nothing, ms, and so on) and LEAVES (this lock's slot leaves from it).
 */
export interface SeenLine extends MonitorLine {
  readonly node: number;
}

/** The source of what a server runs as a replica: its master has run it before. */
export const FROM_MASTER = 'master';

/** A replica's lines come from the port that its master listens at, which no client has. */
export function seenAt(line: MonitorLine, node: number, servers: readonly ServerAddress[]): SeenLine {
  const fromServer = servers.some(({ host, port }) => line.source === `${host}:${port}`);
  return { ...line, node, source: fromServer ? FROM_MASTER : line.source };
}
