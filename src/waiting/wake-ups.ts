import type { LockError, RefusedError } from '../errors.js';
import type { ChannelListener, ChannelSource } from '../redis/connections/channel-source.js';
import type { LocalLine } from './line.js';
import type { RetrySchedule } from './retry-schedule.js';

/** The line that a message wakes. */
interface WokenLine {
  /** Does what there is to do next, if anything. */
  step(): void;
  rejectAll(error: LockError): void;
}

/**
 * The subscription of one line, and what its messages cause. It begins for the first call that has to wait and is kept
 * for a while after the last has left.
 */
export class WakeUps implements ChannelListener {
  #wanted = false;

  constructor(
    private readonly source: ChannelSource,
    private channel: string,
    private readonly line: LocalLine,
    private readonly schedule: RetrySchedule,
    private readonly host: WokenLine,
  ) {}

  get wanted(): boolean {
    return this.#wanted;
  }

  get isConfirmed(): boolean {
    return this.source.isConfirmed(this.channel);
  }

  begin(): void {
    this.#wanted = true;
    this.source.want(this.channel, this);
  }

  end(): void {
    this.#wanted = false;
    this.source.forget(this.channel, this);
  }

  isAt(channel: string): boolean {
    return channel === this.channel;
  }

  /** The one waiter of the line hears of its turn on another channel from now on. */
  moveTo(channel: string): void {
    this.channel = channel;
  }

  /** Channels know no databases, and any client may publish: whatever a message says, it is only a reason to look. */
  message(): void {
    this.schedule.published();
    this.schedule.wake();
  }

  /** A message published before the subscription stood was missed: the head looks again, unless it is not its turn. */
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
