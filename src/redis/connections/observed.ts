import { tracingChannel } from 'node:diagnostics_channel';
import { Redis } from 'ioredis';

/** On this channel, ioredis 5.11 and later publishes each command that has a promise. */
const commands = tracingChannel('ioredis:command');

type SendCommand = Redis['sendCommand'];

/** Caches of `readsAsOwn`: the last function that is the one of ioredis, and the last that is not. */
let own: SendCommand | undefined;
let foreign: SendCommand | undefined;

/**
 * Whether a monitoring agent observes the commands of this connection: it wrapped or rewrote `sendCommand`, or it
 * subscribed to the channel. An agent needs an ordinary command with a promise. Agents can start and stop at any time,
 * so the check precedes every command.
 */
export function isObserved(redis: Redis): boolean {
  const { sendCommand } = redis;
  return (sendCommand !== own && !isOwn(sendCommand)) || commands.hasSubscribers;
}

/** Whether an agent may observe a connection that does not exist yet, or that the caller does not know. */
export const isAnyObserved = (): boolean => isObserved(Redis.prototype as Redis);

function isOwn(sendCommand: SendCommand): boolean {
  if (sendCommand === foreign) return false;
  if (readsAsOwn(sendCommand)) {
    own = sendCommand;
    return true;
  }
  foreign = sendCommand;
  return false;
}

/**
 * Whether the source text of `sendCommand` is that of ioredis. Agents set no common mark, and most wrap the function
 * before this module loads, so there is no original to compare with. A wrapper does not push to the command queue
 * itself. A function that an agent rewrote while it was loaded (New Relic, Sentry) does push, and also publishes. In
 * case of doubt, the function counts as wrapped.
 */
function readsAsOwn(sendCommand: SendCommand): boolean {
  const text = Function.prototype.toString.call(sendCommand);
  return text.includes('.commandQueue.push(') && !/runStores|tracePromise|traceSync|apm/i.test(text);
}
