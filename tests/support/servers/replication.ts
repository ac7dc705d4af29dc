import type { RedisServer } from './servers.js';

/** What a server says of its replication. */
interface Replication {
  /** Of the master that it follows; undefined: it is one itself. */
  readonly masterPort: number | undefined;
  readonly linked: boolean;
  /** Bytes of its master's history that it has run; a master's own count goes on with what it writes. */
  readonly offset: number;
}

export async function replicationOf(server: RedisServer): Promise<Replication> {
  const info = String(await server.command('INFO', 'replication'));
  const value = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  const masterPort = value('master_port');
  return masterPort === undefined
    ? { masterPort: undefined, linked: false, offset: Number(value('master_repl_offset')) }
    : {
        masterPort: Number(masterPort),
        linked: value('master_link_status') === 'up',
        offset: Number(value('slave_repl_offset')),
      };
}

/**
 * Whether a replica has everything that its master had when this was asked. Its link alone does not say so: it is up
 * as soon as the replica has loaded what it was filled with, and what was written meanwhile comes up to a second later.
 */
export async function hasCaughtUp(replica: RedisServer, master: RedisServer): Promise<boolean> {
  const { offset } = await replicationOf(master);
  const copy = await replicationOf(replica);
  return copy.linked && copy.offset >= offset;
}
