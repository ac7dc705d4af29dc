import { ClientClosedError } from '../errors.js';
import type { Member } from './members.js';
import type { VoteSummary } from './server-vote.js';
import { isDown, noteAnswer, noteUnanswered } from './unresponsive.js';

interface MajorityRead<T, V> {
  readonly members: readonly Member[];
  readonly quorum: number;
  readonly question: (member: Member) => Promise<T>;
  readonly meaning: (answers: readonly T[]) => V;
  /**
   * The lowest and the highest answer that a server can give. Without it the read waits for every server, up to the
   * command deadline.
   */
  readonly between: readonly [T, T] | undefined;
  readonly noQuorum: (votes: readonly VoteSummary[]) => Error;
}

/**
 * Sends the question to all servers. Settles when a majority has answered and either no missing answer can change the
 * result, or all servers that have not answered are down.
 */
export function readFromMajority<T, V>(terms: MajorityRead<T, V>): Promise<V> {
  const { members, quorum, question, meaning, between, noQuorum } = terms;
  const { clock, options } = (members[0] as Member).runtime;
  const answers: T[] = [];
  const errors = new Map<Member, unknown>();
  const open = new Set(members);

  const isDecided = ([least, most]: readonly [T, T]): boolean => {
    if (answers.length + open.size < quorum) return true;
    if (answers.length < quorum) return false;
    const [low, high] = [least, most].map((each) => meaning([...answers, ...[...open].map(() => each)]));
    return low === high || [...open].every(isDown);
  };

  const failure = (): Error => {
    const closed = [...errors.values()].every((error) => error instanceof ClientClosedError);
    if (closed) return new ClientClosedError();
    const summaryOf = (member: Member): VoteSummary => {
      const outcome = errors.has(member) || open.has(member) ? 'failed' : 'acquired';
      return { member, outcome, error: errors.get(member) };
    };
    return noQuorum(members.map(summaryOf));
  };

  return new Promise<V>((answer, fail) => {
    const look = (): void => {
      if (open.size > 0 && (between === undefined || !isDecided(between))) return;
      attempt.cancel();
      if (answers.length >= quorum) answer(meaning(answers));
      else fail(failure());
    };
    const attempt = clock.setTimer(clock.now() + options.attemptMs, () => {
      for (const member of open) noteUnanswered(member, 'attempt over');
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
