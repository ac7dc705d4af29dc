import { ClientClosedError } from '../errors.js';
import type { Ask } from './server-vote.js';
import { isAway, noteAnswer, noteAway } from './unresponsive.js';
import type { Member } from './members.js';

/** What a server said. */
export type Told = Pick<Ask, 'member' | 'outcome' | 'error'>;

interface MajorityQuestion<T, V> {
  readonly members: readonly Member[];
  readonly quorum: number;
  readonly question: (member: Member) => Promise<T>;
  readonly meaning: (answers: readonly T[]) => V;
  /** The least and the most that a server can answer. Without, each is waited for, up to its command deadline. */
  readonly between: readonly [T, T] | undefined;
  readonly noQuorum: (servers: readonly Told[]) => Error;
}

/** What servers say of which a majority has to answer, while the others can change nothing, or are away. */
export function askMajority<T, V>(terms: MajorityQuestion<T, V>): Promise<V> {
  const { members, quorum, question, meaning, between, noQuorum } = terms;
  const { clock, options } = (members[0] as Member).inner.runtime;
  const answers: T[] = [];
  const errors = new Map<Member, unknown>();
  const open = new Set(members);

  const isDecided = ([least, most]: readonly [T, T]): boolean => {
    if (answers.length + open.size < quorum) return true;
    if (answers.length < quorum) return false;
    const [low, high] = [least, most].map((each) => meaning([...answers, ...[...open].map(() => each)]));
    return low === high || [...open].every(isAway);
  };

  const unanswered = (): Error => {
    const closed = [...errors.values()].every((error) => error instanceof ClientClosedError);
    if (closed) return new ClientClosedError();
    const told = (member: Member): Told => {
      const outcome = errors.has(member) || open.has(member) ? 'failed' : 'acquired';
      return { member, outcome, error: errors.get(member) };
    };
    return noQuorum(members.map(told));
  };

  return new Promise<V>((answer, fail) => {
    const look = (): void => {
      if (open.size > 0 && (between === undefined || !isDecided(between))) return;
      late.cancel();
      if (answers.length >= quorum) answer(meaning(answers));
      else fail(unanswered());
    };
    const late = clock.setTimer(clock.now() + options.attemptMs, () => {
      for (const member of open) noteAway(member);
      look();
    });
    for (const member of members) {
      void question(member)
        .then(
          (value) => (answers.push(value), noteAnswer(member)),
          (error: unknown) => errors.set(member, error),
        )
        .then(() => (open.delete(member), look()));
    }
  });
}
