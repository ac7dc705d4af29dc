import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { AcquireMessage, HoldMessage } from '../../index.js';

/** What happens to an acquisition or a hold, once each. */
export interface Lifecycle<M> {
  started(message: M): void;
  ended(message: M): void;
}

const ACQUIRE = 'tracing:holdfast:acquire';
const HOLD = 'tracing:holdfast:hold';

/** Subscribes to the tracing channels of Holdfast. Returns a function that ends the subscription. */
export function subscribeTo(acquire: Lifecycle<AcquireMessage>, hold: Lifecycle<HoldMessage>): () => void {
  const subscriptions: readonly [channel: string, listener: (message: unknown) => void][] = [
    [`${ACQUIRE}:start`, (message) => acquire.started(message as AcquireMessage)],
    [`${ACQUIRE}:asyncStart`, (message) => acquire.ended(message as AcquireMessage)],
    [`${HOLD}:start`, (message) => hold.started(message as HoldMessage)],
    [`${HOLD}:asyncStart`, (message) => hold.ended(message as HoldMessage)],
  ];
  for (const [channel, listener] of subscriptions) subscribe(channel, listener);
  return () => {
    for (const [channel, listener] of subscriptions) unsubscribe(channel, listener);
  };
}
