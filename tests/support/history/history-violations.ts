import type { HistoryEvent } from './history-events.js';

export type ViolationKind =
  | 'two valid holds at once'
  | 'more permits than there are'
  | 'permits lost'
  | 'followed without a request'
  | 'streak longer than allowed'
  | 'lease that Redis has not confirmed'
  | 'streak after a forced unlock'
  | 'streak after another grant'
  | 'kept too long'
  | 'more than a fair share'
  | 'latch opened too early'
  | 'latch not opened'
  | 'valid without the lock'
  | 'lease ended without a loss signal'
  | 'loss signal too late'
  | 'loss signal twice'
  | 'success after the loss'
  | 'effect after the rejection'
  | 'fencing token went back'
  | 'left outside a free lock'
  | 'overtaken in a fair queue'
  | 'lost while Redis answered'
  | 'memory that grows'
  | 'wrong answer'
  | 'left behind'
  | 'never settled'
  | 'settled too late'
  | 'malformed history';

export interface Violation {
  readonly kind: ViolationKind;
  readonly message: string;
  readonly events: readonly HistoryEvent[];
}

export type Violate = (kind: ViolationKind, message: string, ...events: HistoryEvent[]) => void;
