import { codeIn, section, tableUnder } from '../project/readme.js';
import { serverMajor } from './server-version.js';

/** A row of the README's table of permissions. */
export interface Permissions {
  readonly commands: readonly string[];
  readonly keys: readonly string[];
  readonly channels: readonly string[];
}

const rows = tableUnder('Used', section('What Redis must allow')).map(
  ([used = '', commands = '', keys = '', channels = '']) => ({ used, commands, keys, channels }),
);

/** What the README says is needed for this, with these names in place of `name`. */
export function permissionsFor(used: readonly string[], names: string): Permissions {
  const wanted = rows.filter((row) => used.some((each) => row.used === each || codeIn(row.used).includes(each)));
  if (wanted.length < used.length) throw new Error(`not all of ${used.join(', ')} are in the README`);
  const all = (cell: 'commands' | 'keys' | 'channels', sign: string): string[] => [
    ...new Set(wanted.flatMap((row) => codeIn(row[cell])).filter((code) => code.startsWith(sign))),
  ];
  return {
    commands: all('commands', '+'),
    keys: all('keys', '~').map((pattern) => pattern.replace('name', names)),
    // Redis 6.0 has none.
    channels: serverMajor() >= 7 ? all('channels', '&') : [],
  };
}

/** The words for ACL SETUSER. */
export function rulesOf({ commands, keys, channels }: Permissions): string[] {
  const none = serverMajor() >= 7 ? ['resetchannels'] : [];
  return ['reset', 'on', '>secret', ...none, '-@all', ...keys, ...channels, ...commands];
}
