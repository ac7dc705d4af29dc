/* Finds the ACL rule that a rejected command lacks. Redis versions word the error differently. */

/** The request that Redis rejected. */
export interface RefusedRequest {
  readonly keys?: readonly string[];
  /** The channel that a script publishes to, or that the client subscribes to. */
  readonly channel?: string | undefined;
  /** PUBLISH or SPUBLISH, if the script gets the command as an argument. */
  readonly publish?: string;
  readonly source?: string | undefined;
}

/**
 * The rule for ACL SETUSER, such as `+hset` or `&redisson_lock__channel:*`; `undefined` if no permission is missing.
 */
export function missingRule(message: string, { keys, channel, publish, source }: RefusedRequest): string | undefined {
  if (!/NOPERM|ACL failure|user executing the script can't/i.test(message)) return undefined;
  if (/channel/i.test(message) && channel !== undefined) return `&${channelPattern(channel)}`;
  if (/\bkeys?\b/i.test(message) && keys !== undefined) return keys.map((key) => `~${key}`).join(' ');
  const named = /run the '([^']+)' command/i.exec(message)?.[1];
  if (named !== undefined) return `+${named.toLowerCase()}`;
  // Redis 7.0 and older name only the line of the script, so the rule lists every command of that line.
  const line = Number(/@user_script:\s?(\d+)/.exec(message)?.[1]);
  const text = source?.split('\n')[line - 1] ?? '';
  const commands = [...text.matchAll(/redis\.call\((?:'([A-Z]+)'|publish)/g)].map(([, command]) => command ?? publish);
  const rules = commands.flatMap((command) => (command === undefined ? [] : [`+${command.toLowerCase()}`]));
  return rules.length > 0 ? [...new Set(rules)].join(' ') : undefined;
}

/** A pattern for all channels of one kind: their names begin with the same prefix. */
const channelPattern = (channel: string): string =>
  `${/^(?:redisson|holdfast)_[a-z]+(?:__channel__|__channel:|:)/.exec(channel)?.[0] ?? channel}*`;
