import { PUBLISH_OF_TOPOLOGY, type Operation } from '../scripts/script.js';
import type { CommandRoutes } from '../topologies/topology.js';

export type RequestArgs = readonly (string | number)[];

/** What follows the command's name: the script, unless it is a plain read, its keys, and its arguments. */
export function requestWords<Reply>(
  { script, args: counted }: Operation<readonly string[], RequestArgs, Reply>,
  keys: readonly string[],
  args: RequestArgs,
  routes: CommandRoutes,
  /** The script's text instead of its address. */
  useSource: boolean,
  /** Of a script that has one. */
  notAfter: string | undefined,
): string[] {
  // As long as it will be: a list that grows makes itself room for sixteen more.
  const words = new Array<string>(
    (script === undefined ? 0 : 2) + keys.length + args.length + (notAfter === undefined ? 0 : 1),
  );
  let at = 0;
  if (script !== undefined) {
    words[at++] = useSource ? script.source : script.sha;
    words[at++] = keys.length === 1 ? '1' : String(keys.length);
  }
  for (const key of keys) words[at++] = key;
  if (notAfter !== undefined && counted === 'variable') words[at++] = notAfter;
  for (const arg of args) {
    if (arg === PUBLISH_OF_TOPOLOGY) words[at++] = routes.publish;
    else words[at++] = typeof arg === 'string' ? arg : String(arg);
  }
  if (notAfter !== undefined && counted !== 'variable') words[at] = notAfter;
  return words;
}

/** That the script publishes to: it is told the command, and then the channel. */
export function channelOf(args: RequestArgs, publish: string): string | undefined {
  const at = args.findIndex((arg) => arg === publish || arg === PUBLISH_OF_TOPOLOGY);
  return at < 0 ? undefined : String(args[at + 1]);
}
