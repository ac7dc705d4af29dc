import { tracingChannel } from 'node:diagnostics_channel';
import { Redis } from 'ioredis';

/** ioredis 5.11 and later publish each command that has a promise here. */
const commands = tracingChannel('ioredis:command');

type SendCommand = Redis['sendCommand'];

/** The function of ioredis itself, and the one that was found not to be it. Each text is read once. */
let own: SendCommand | undefined;
let foreign: SendCommand | undefined;

/**
 * Whether somebody watches the commands of this connection: an agent has wrapped or rewritten `sendCommand`, or
 * subscribes to the channel. An agent needs an ordinary command, with a promise. It may begin and end at any time, so
 * every command asks.
 */
export function isObserved(redis: Redis): boolean {
  const { sendCommand } = redis;
  return (sendCommand !== own && !isOwn(sendCommand)) || commands.hasSubscribers;
}

/** Whether it may be that of a connection that is not made yet, or not known here. */
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
 * Agents leave no common mark, and most wrap the function before this module loads: there is nothing to compare it with.
 * So its text decides. A wrapper does not queue the command itself; a function that was rewritten as it was loaded
 * (New Relic, Sentry) still does, and publishes beside that. What cannot be told counts as wrapped.
 */
function readsAsOwn(sendCommand: SendCommand): boolean {
  const text = Function.prototype.toString.call(sendCommand);
  return text.includes('.commandQueue.push(') && !/runStores|tracePromise|traceSync|apm/i.test(text);
}
