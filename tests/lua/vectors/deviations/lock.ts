import { FREE, LOST, type Deviations } from './reasons.js';

const OWN_LEASE = 'the lease belongs to the hold: a partial release sets the TTL to what the others have left';
const NEVER_SHORTER = 'a nested acquire never shortens the lease of the holds around it';
const RENEWAL_NEVER_SHORTER = 'a renewal never shortens a lease';

export const lock: Deviations = {
  lock: [
    { scenario: 'watchdog-nested', steps: [5], why: OWN_LEASE, leaseEnd: { lk: { after: 2, ms: 30_000 } } },
    { scenario: 'watchdog-nested', steps: [6], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    { scenario: 'trylock-free', steps: [3], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    { scenario: 'leases-nested', steps: [2, 3], why: NEVER_SHORTER, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    { scenario: 'leases-nested', steps: [4, 5], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    { scenario: 'force', steps: [6], in: 'client', why: LOST, code: 'ERR_LOCK_LOST' },
    {
      scenario: 'force',
      steps: [7],
      in: 'client',
      why: 'inside a lost hold nothing is acquired until it is given back, and this thread had two',
      unlocksFirst: true,
    },
    {
      scenario: 'expiry',
      steps: [2],
      in: 'client',
      why: 'a tenure whose last deadline passes is given back at once, a little before the lease ends by itself',
      published: [FREE('lk')],
      // On a busy machine the lease may have ended by then.
      orPublished: [],
    },
    { scenario: 'expiry', steps: [8], in: 'client', why: LOST, code: 'ERR_LOCK_LOST' },
    {
      scenario: 'watchdog-after-lease',
      steps: [2],
      in: 'client',
      why: `a hold without a lease has the watchdog's, not that of the hold around it; ${NEVER_SHORTER}`,
      leaseEnd: { lk: { after: 1, ms: 9_000 } },
    },
    {
      scenario: 'watchdog-after-lease',
      steps: [3],
      in: 'scripts',
      why: RENEWAL_NEVER_SHORTER,
      leaseEnd: { lk: { after: 2, ms: 9_000 } },
    },
    {
      scenario: 'watchdog-after-lease',
      steps: [3],
      in: 'client',
      why: RENEWAL_NEVER_SHORTER,
      leaseEnd: { lk: { after: 1, ms: 9_000 } },
    },
    { scenario: 'watchdog-after-lease', steps: [4, 5], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 9_000 } } },
    {
      scenario: 'renewal-batch',
      steps: [10],
      in: 'scripts',
      why: OWN_LEASE,
      leaseEnd: { l3: { after: 8, ms: 3_000 } },
    },
    {
      scenario: 'renewal-batch',
      steps: [10],
      in: 'client',
      why: `${OWN_LEASE}: since the last tick`,
      leaseEnd: { l3: { after: 1, ms: 2_000 + 3_000 } },
    },
    { scenario: 'async', steps: [2, 3, 4, 5, 6, 7], why: NEVER_SHORTER, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    { scenario: 'async', steps: [12, 13], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    { scenario: 'async-rest', steps: [2], why: NEVER_SHORTER, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    {
      scenario: 'async-rest',
      steps: [3, 4, 5, 6],
      in: 'scripts',
      why: `${NEVER_SHORTER}; ${OWN_LEASE}`,
      leaseEnd: { lk: { after: 1, ms: 30_000 } },
    },
    {
      scenario: 'async-rest',
      steps: [3, 4, 5, 6],
      in: 'client',
      why: `a hold without a lease has the watchdog's; ${NEVER_SHORTER}; ${OWN_LEASE}`,
      leaseEnd: { lk: { after: 3, ms: 30_000 } },
    },
    { scenario: 'async-rest', steps: [7, 8], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
    {
      scenario: 'renewal-dead-thread',
      steps: [5],
      in: 'client',
      why: 'a dead thread does not keep the watchdog from the hold that lives',
      leaseEnd: { lk: { after: 1, ms: 1_000 + 3_000 } },
    },
    {
      scenario: 'renewal-dead-thread',
      steps: [6],
      in: 'client',
      why: 'a dead thread does not keep the watchdog from the hold that lives',
      leaseEnd: { lk: { after: 1, ms: 2_000 + 3_000 } },
    },
  ],
};
