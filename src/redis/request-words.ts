import { PUBLISH_OF_TOPOLOGY, type Operation } from './script.js';
import type { CommandRoutes } from './topology.js';

type Args = readonly (string | number)[];

/** What follows the command's name: the script, unless it is a plain read, its keys, and its arguments. */
export function requestWords<Reply>(
  { script, args: counted }: Operation<readonly string[], Args, Reply>,
  keys: readonly string[],
  args: Args,
  routes: CommandRoutes,
  /** The script's text instead of its address. */
  useSource: boolean,
  /** Of a script that has one. */
  notAfter: string | undefined,
): string[] {
  const words: string[] = [];
  if (script !== undefined) {
    words.push(useSource ? script.source : script.sha, keys.length === 1 ? '1' : String(keys.length));
  }
  for (const key of keys) words.push(key);
  if (notAfter !== undefined && counted === 'variable') words.push(notAfter);
  for (const arg of args) {
    if (arg === PUBLISH_OF_TOPOLOGY) words.push(routes.publish);
    else words.push(typeof arg === 'string' ? arg : String(arg));
  }
  if (notAfter !== undefined && counted !== 'variable') words.push(notAfter);
  return words;
}

/** That the script publishes to: it is told the command, and then the channel. */
export function channelOf(args: Args, publish: string): string | undefined {
  const at = args.findIndex((arg) => arg === publish || arg === PUBLISH_OF_TOPOLOGY);
  return at < 0 ? undefined : String(args[at + 1]);
}
