import type { Deviation } from '../comparison.js';

/* Reasons and forms of deviations that several kinds have. */

export type Deviations = Readonly<Record<string, readonly Deviation[]>>;

export const LOST = 'a hold that was lost is told apart from one that never was';
export const NOT_OURS = 'an unlock by a stranger is refused before anything is sent';
export const NOT_FREED = 'nothing came free: nothing is published';
export const WE_CAN = 'Redisson supports no such call here';
export const NO_PERMITS = 'a message without permits wakes nobody, and a negative one makes a JVM fail (hazard 30)';
const OWN_CODE = 'a second acquisition by the owner has a code of its own';
const OWN_LEASE =
  'the lease belongs to the hold: a nested acquire never shortens it, a release leaves what the others have';

export const FREE = (name: string): { channel: string; payload: string } => ({
  channel: `redisson_lock__channel:{${name}}`,
  payload: '0',
});

export const again = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: OWN_CODE,
  code: 'ERR_LOCK_NON_REENTRANT',
});

export const lost = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: LOST,
  code: 'ERR_LOCK_LOST',
});

export const ownLease = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: OWN_LEASE,
  ownLease: true,
});
