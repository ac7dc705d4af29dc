/* What a server that refuses a command would have to allow: the words are the server's, and differ between versions. */

/** What was asked for when the server refused. */
export interface RefusedRequest {
  readonly keys?: readonly string[];
  /** That a script publishes to, or that is subscribed to. */
  readonly channel?: string | undefined;
  /** PUBLISH or SPUBLISH, where a script is told. */
  readonly publish?: string;
  readonly source?: string | undefined;
}

/** The words for ACL SETUSER, such as `+hset` or `&redisson_lock__channel:*`; undefined: no permission is missing. */
export function missingRule(message: string, { keys, channel, publish, source }: RefusedRequest): string | undefined {
  if (!/NOPERM|ACL failure|user executing the script can't/i.test(message)) return undefined;
  if (/channel/i.test(message) && channel !== undefined) return `&${channelPattern(channel)}`;
  if (/\bkeys?\b/i.test(message) && keys !== undefined) return keys.map((key) => `~${key}`).join(' ');
  const named = /run the '([^']+)' command/i.exec(message)?.[1];
  if (named !== undefined) return `+${named.toLowerCase()}`;
  // Redis 7.0 and before say only where the script stood.
  const line = Number(/@user_script:\s?(\d+)/.exec(message)?.[1]);
  const text = source?.split('\n')[line - 1] ?? '';
  const commands = [...text.matchAll(/redis\.call\((?:'([A-Z]+)'|publish)/g)].map(([, command]) => command ?? publish);
  const rules = commands.flatMap((command) => (command === undefined ? [] : [`+${command.toLowerCase()}`]));
  return rules.length > 0 ? [...new Set(rules)].join(' ') : undefined;
}

/** All channels of a kind: each begins with the same words. */
const channelPattern = (channel: string): string =>
  `${/^redisson_[a-z]+(?:__channel__|__channel:|:)/.exec(channel)?.[0] ?? channel}*`;
