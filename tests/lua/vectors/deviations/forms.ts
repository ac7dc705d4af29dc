import type { Deviation } from '../comparison.js';

/* Forms of deviations that several kinds have. */

export type Deviations = Readonly<Record<string, readonly Deviation[]>>;

export const FREE = (name: string): { channel: string; payload: string } => ({
  channel: `redisson_lock__channel:{${name}}`,
  payload: '0',
});

export const again = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'ownCode',
  code: 'ERR_LOCK_NON_REENTRANT',
});

export const lost = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: 'lost',
  code: 'ERR_LOCK_LOST',
});

export const ownLease = (scenario: string, ...steps: number[]): Deviation => ({
  scenario,
  steps,
  why: ['neverShorter', 'ownLease'],
  ownLease: true,
});
