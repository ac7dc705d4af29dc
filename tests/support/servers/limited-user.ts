import { admin, atLast } from '../redis.js';
import { permissionsFor, rulesOf } from './user.js';

/** A user of the suite's server, deleted after the last test of the file. */
export interface LimitedUser {
  readonly credentials: { readonly username: string; readonly password: string };
  /** The permissions that docs/permissions.md lists for the used features, except one command if given. */
  allow(except?: string): Promise<unknown>;
}

/** A user for names that begin with `mark`. */
export function limitedUser(mark: string, used: readonly string[]): LimitedUser {
  const username = `${mark}-user`;
  const all = permissionsFor(['every client', 'a database other than 0', 'a waiter', ...used], `${mark}*`);
  atLast(() => admin().call('ACL', 'DELUSER', username));
  return {
    credentials: { username, password: 'secret' },
    allow(except) {
      const commands = all.commands.filter((rule) => rule !== `+${except}`);
      return admin().call('ACL', 'SETUSER', username, ...rulesOf({ ...all, commands }));
    },
  };
}
