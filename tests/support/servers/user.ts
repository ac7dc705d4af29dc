import { codeIn, page, tableUnder } from '../project/guide.js';
import { serverMajor } from './server-version.js';

/** A row of the table of docs/permissions.md. */
export interface Permissions {
  readonly commands: readonly string[];
  readonly keys: readonly string[];
  readonly channels: readonly string[];
}

const rows = tableUnder('Used', page('docs/permissions.md')).map(
  ([used = '', commands = '', keys = '', channels = '']) => ({ used, commands, keys, channels }),
);

/** The permissions that docs/permissions.md lists for each of `used`, with `names` in place of `name`. */
export function permissionsFor(used: readonly string[], names: string): Permissions {
  const wanted = rows.filter((row) => used.some((each) => row.used === each || codeIn(row.used).includes(each)));
  if (wanted.length < used.length) throw new Error(`not all of ${used.join(', ')} are in docs/permissions.md`);
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
