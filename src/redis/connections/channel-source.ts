import type { RefusedError } from '../../errors.js';

/** A listener of one channel. */
export interface ChannelListener {
  /** A message arrived. Its content is not passed on: any client, also one of another database, may have published it. */
  message(): void;
  /** The server confirmed the subscription. Messages published before may have been missed. */
  confirmed(): void;
  /** The connection is closed: no message arrives until the next confirmation. */
  disconnected(): void;
  /** The server refuses this channel, and will not allow it later. */
  refused(error: RefusedError): void;
}

/** The connections that carry the subscriptions of a client. */
export interface ChannelSource {
  /**
   * Subscribes. `listener.confirmed()` follows, and again after every reconnection, until `forget`. A channel may have
   * several listeners: each message and each confirmation goes to all of them.
   */
  want(channel: string, listener: ChannelListener): void;
  /** Removes the listener. The last one to go unsubscribes the channel. */
  forget(channel: string, listener: ChannelListener): void;
  isConfirmed(channel: string): boolean;
  /** Channels without a listener whose subscriptions the servers may still count. */
  leaving(): Iterable<string>;
  /** Whether a call waits for a message. The connections are checked for silence only while one does. */
  attend(attended: boolean): void;
}
