import type { HoldRecord } from '../holding/hold-record.js';
import { quoted } from '../visible.js';

/** Returns the message for an `unlock()` without a hold: the reason, and the way to fix the call. */
export function notOwnerText(name: string, held: HoldRecord | undefined, family = held?.protocol.family): string {
  let message = `unlock(): this flow does not hold lock ${quoted(name)}.`;
  if (held !== undefined && held.protocol.family !== family) {
    message += ` It is held in this process as another kind of lock (${held.protocol.family}).`;
  } else if (held !== undefined) {
    message +=
      ` It is held in this process${held.site === undefined ? '' : ` since ${held.site.toString()}`}.` +
      ' Only the code that awaited lock() or tryLock(), and the code that it calls, can release it. The hold does not ' +
      'reach the caller of an async function that locks and returns, nor the code after Promise.all, Promise.race or ' +
      'the yield of an async generator. Keep the Hold instead: ' +
      'const hold = await lock.acquire(); ... await hold.release().';
  }
  return `${message} See npx holdfast explain ERR_LOCK_NOT_OWNER.`;
}
