import { PUBLISH_COMMAND, type Operation } from '../scripts/script.js';
import type { CommandRoutes } from '../topologies/topology.js';

export type RequestArgs = readonly (string | number)[];

/** The arguments of the command: the script (a plain read has none), the keys, and the arguments of the operation. */
export function commandArgsOf<Reply>(
  { script, notAfter: place }: Operation<readonly string[], RequestArgs, Reply>,
  keys: readonly string[],
  args: RequestArgs,
  routes: CommandRoutes,
  /** Send the source of the script instead of its SHA-1 digest. */
  useSource: boolean,
  /** The latest server time at which the script may take effect; `undefined` for a script without that argument. */
  notAfter: string | undefined,
): string[] {
  // Allocate the final length: a growing array reserves room for 16 more elements.
  const commandArgs = new Array<string>(
    (script === undefined ? 0 : 2) + keys.length + args.length + (notAfter === undefined ? 0 : 1),
  );
  let at = 0;
  if (script !== undefined) {
    commandArgs[at++] = useSource ? script.source : script.sha;
    commandArgs[at++] = keys.length === 1 ? '1' : String(keys.length);
  }
  for (const key of keys) commandArgs[at++] = key;
  if (notAfter !== undefined && place === 'first') commandArgs[at++] = notAfter;
  for (const arg of args) {
    if (arg === PUBLISH_COMMAND) commandArgs[at++] = routes.publish;
    else commandArgs[at++] = typeof arg === 'string' ? arg : String(arg);
  }
  if (notAfter !== undefined && place === 'last') commandArgs[at] = notAfter;
  return commandArgs;
}

/** The channel on which the script may be refused to publish. In the arguments, it follows the publish command. */
export function channelOf(args: RequestArgs, publish: string): string | undefined {
  const at = args.findIndex((arg) => arg === publish || arg === PUBLISH_COMMAND);
  return at < 0 ? undefined : String(args[at + 1]);
}
