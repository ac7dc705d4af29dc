import type { RedisServer } from './servers.js';

/** The replication state that a server reports. */
interface Replication {
  /** Of the master that it follows; undefined: it is one itself. */
  readonly masterPort: number | undefined;
  readonly linked: boolean;
  /** Bytes of its master's history that the server has processed. The count of a master increases with its writes. */
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
 * Whether a replica has everything that its master had at the call. The state of the link is not enough: the link is up
 * when the replica has loaded the initial copy, and later writes arrive up to one second after that.
 */
export async function hasCaughtUp(replica: RedisServer, master: RedisServer): Promise<boolean> {
  const { offset } = await replicationOf(master);
  const copy = await replicationOf(replica);
  return copy.linked && copy.offset >= offset;
}
