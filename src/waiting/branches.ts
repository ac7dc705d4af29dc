/* Branches of one hold. A branch waits until no other branch of the hold uses the lock. */
import type { LeaseClock } from '../clock.js';
import { LockTimeoutError, LockUpgradeError, type LockError, type RedisUnavailableError } from '../errors.js';
import type { HoldRecord, HoldTerms } from '../holding/hold-record.js';
import { LightSet } from '../light-set.js';
import type { LockProtocol } from '../protocols/lock-protocol.js';
import { abortedBy, onAbort, type WaitLimit } from './limits/wait-limit.js';
import { warnLongWait } from '../diagnostics/long-wait.js';
import { LONG_WAIT_MS } from '../timing.js';

interface BranchCall {
  readonly protocol: LockProtocol;
  readonly terms: HoldTerms;
  readonly limit: WaitLimit;
}

/**
 * Waits for a place directly inside `parent`. Exclusive branches use the lock one at a time. Resolves with `false` if
 * the parent was released meanwhile.
 */
export function waitForBranch(
  clock: LeaseClock,
  { protocol, terms, limit }: BranchCall,
  parent: HoldRecord,
): Promise<boolean> {
  if (parent.enter(protocol)) return Promise.resolve(true);
  if (limit.kind === 'one try' || (limit.until ?? Infinity) <= clock.now())
    return Promise.reject(new LockTimeoutError(protocol.name, limit.waitTime));
  return new Promise((resolve, reject) => {
    const branches = (parent.branches ??= new LightSet());
    const { until, signal } = limit;
    const leave = (): void => {
      branches.delete(wake);
      timer?.cancel();
      longWait.cancel();
      unwatch?.();
    };
    const fail = (error: LockError): void => (leave(), reject(error));
    const wake = (unavailable?: RedisUnavailableError): void => {
      if (unavailable !== undefined) {
        // A call without a time limit fails after one command deadline in which Redis did not reply.
        if (limit.kind === 'unlimited') fail(unavailable);
        return;
      }
      if (parent.loss !== undefined) return fail(parent.loss);
      if (parent.state === 'open') {
        if (!mayEnter(protocol, parent)) return fail(new LockUpgradeError(protocol.name));
        if (!parent.enter(protocol)) return;
      }
      leave();
      resolve(parent.state === 'open');
    };
    const timer =
      until === undefined
        ? undefined
        : clock.setTimer(until, () => fail(new LockTimeoutError(protocol.name, limit.waitTime)));
    const longWait = clock.clock.setTimer(LONG_WAIT_MS, () => warnLongWait({ protocol, site: terms.site }, parent));
    const unwatch = signal && onAbort(signal, () => fail(abortedBy(signal, protocol.name)));
    branches.add(wake);
  });
}

/**
 * Whether a call may wait for a place inside `parent`. A concurrent hold always may. An exclusive hold needs an open
 * exclusive hold around it, and no concurrent branch beside it. Otherwise the call could deadlock: it would wait for a
 * shared hold whose owner may be waiting for this call.
 */
export const mayEnter = (protocol: LockProtocol, parent: HoldRecord): boolean =>
  protocol.concurrent || (isInsideExclusive(parent) && !parent.besideConcurrent);

function isInsideExclusive(hold: HoldRecord | undefined): boolean {
  for (let each = hold; each !== undefined; each = each.parent) {
    if (!each.protocol.concurrent && each.state === 'open') return true;
  }
  return false;
}
