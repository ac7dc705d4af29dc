import type { LockError, RefusedError } from '../errors.js';
import type { ChannelListener, ChannelSource } from '../redis/connections/channel-source.js';
import type { LocalLine } from './line.js';
import type { RetrySchedule } from './retry-schedule.js';

/** The line that a message wakes. */
interface WokenLine {
  /** Takes the next action of the line, if there is one. */
  step(): void;
  rejectAll(error: LockError): void;
}

/**
 * The subscription of one line, and the effects of its messages. The subscription begins for the first call that has to
 * wait. The client keeps the subscription for a while after the last waiter has left.
 */
export class WakeUps implements ChannelListener {
  #isSubscribed = false;

  constructor(
    private readonly source: ChannelSource,
    private current: string,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    private readonly host: WokenLine,
  ) {}

  get isSubscribed(): boolean {
    return this.#isSubscribed;
  }

  get isConfirmed(): boolean {
    return this.source.isConfirmed(this.current);
  }

  begin(): void {
    this.#isSubscribed = true;
    this.source.want(this.current, this);
  }

  end(): void {
    this.#isSubscribed = false;
    this.source.forget(this.current, this);
  }

  get channel(): string {
    return this.current;
  }

  isAt(channel: string): boolean {
    return channel === this.current;
  }

  /** From now on, Redis announces the turn of the line's only waiter on `channel`. */
  moveTo(channel: string): void {
    this.current = channel;
  }

  /**
   * A message is only a reason to try, whatever its content: all databases of a server share its channels, and any
   * client may publish.
   */
  message(): void {
    this.schedule.published();
    this.schedule.wake();
  }

  /**
   * A message published before the confirmation was missed, so the head tries again. The head does not try if another
   * waiter of this client has an earlier place in the Redis queue.
   */
  confirmed(): void {
    if (!this.line.isBehind) this.schedule.wakeUpPending = true;
    this.host.step();
  }

  disconnected(): void {
    this.host.step();
  }

  refused(error: RefusedError): void {
    this.end();
    this.host.rejectAll(error);
  }
}
