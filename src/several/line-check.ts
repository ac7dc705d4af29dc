import type { Timer } from '../clock.js';
import { LINE_CHECK_MS } from '../timing.js';
import type { Member } from './members.js';
import { noteAnswer, noteUnanswered, usualReplyMs } from './unresponsive.js';

/**
 * Checks a server in whose line calls of this client wait. Such a call sends no request, and no message arrives from a
 * server that is down or hangs. One read in {@link LINE_CHECK_MS} serves all of these calls.
 */
class LineCheck {
  readonly #waiting = new Set<() => void>();
  #timer: Timer | undefined;

  constructor(private readonly member: Member) {}

  /** `silent` is called once if the server does not reply. The returned function ends the wait. */
  add(silent: () => void): () => void {
    this.#waiting.add(silent);
    this.#timer ??= this.#later();
    return () => {
      this.#waiting.delete(silent);
      if (this.#waiting.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  #later(): Timer {
    const { clock } = this.member.runtime;
    return clock.setTimer(clock.now() + LINE_CHECK_MS, () => this.#check());
  }

  #check(): void {
    const { member } = this;
    const { clock } = member.runtime;
    const sentAt = clock.now();
    const limit = (this.#timer = clock.setTimer(sentAt + usualReplyMs(member), () => {
      noteUnanswered(member, 'slow');
      this.#timer = undefined;
      for (const silent of [...this.#waiting]) silent();
    }));
    const answered = (): void => {
      noteAnswer(member, clock.now() - sentAt);
      if (this.#timer !== limit) return;
      limit.cancel();
      this.#timer = this.#later();
    };
    // An error that is not a reply leaves the time limit as it is.
    member.isLocked().then(answered, () => undefined);
  }
}

const checks = new WeakMap<object, LineCheck>();

/** Calls `silent` once if the server does not reply any more. The returned function ends the check. */
export function whileInLine(member: Member, silent: () => void): () => void {
  let check = checks.get(member.runtime);
  if (check === undefined) checks.set(member.runtime, (check = new LineCheck(member)));
  return check.add(silent);
}
