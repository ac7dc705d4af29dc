import { afterEach, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { elapsed } from '../support/time/elapsed.js';
import { closeClients, inFlow, openClient, outcome, pause, TestClock } from '../support/clients/lock-clients.js';
import { admin, expectNothingLeft, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';
import { WAITING_KINDS, type Waiting, type WaitingKind } from './waiting-forms.js';

const WITHIN_MS = 200 + 250;
const WAIT_MS = 500;
const DEADLINE_MS = 900;

const names: string[] = [];
afterEach(() => closeClients());

/** The waiters that gave up before the release, and the result of the one that stayed. */
interface Seen {
  readonly timedOut: unknown;
  readonly aborted: unknown;
  readonly stayed: unknown;
  readonly enteredEarly: boolean;
  readonly afterMs: number;
}

async function waitInLine(kind: WaitingKind, form: string, client: LockClient, other: LockClient): Promise<Seen> {
  const name = freshName('waiting');
  names.push(name);
  const clear = await kind.block(other, name);
  const controller = new AbortController();
  const waits: string[] = [];
  client.events.on('waiting', ({ lockName }) => {
    if (lockName.startsWith(name)) waits.push(lockName);
  });
  let enteredAt: number | undefined;
  const begin = async (waiting: Waiting): Promise<{ done: Promise<unknown> }> => {
    const before = waits.length;
    const called = inFlow(() => kind.forms[form]!(client, name, waiting, () => (enteredAt ??= performance.now())));
    const done = outcome(
      called.then((got) => (got ? undefined : Promise.reject(Object.assign(new Error(), { code: 'busy' })))),
    );
    await until(() => waits.length > before, 'it waits');
    return { done };
  };
  const limited = kind.endless?.includes(form) ? undefined : await begin({ waitTime: WAIT_MS });
  const abandoned = await begin({ signal: controller.signal });
  const staying = await begin({});
  controller.abort();
  const [timedOut, aborted] = [await limited?.done, await abandoned.done];
  await pause(30); // the effects of the waiters that have left have ended
  const enteredEarly = enteredAt !== undefined;
  await clear();
  const clearAt = performance.now();
  const stayed = await staying.done;
  return { timedOut, aborted, stayed, enteredEarly, afterMs: elapsed(clearAt, enteredAt) };
}

test.each(Object.entries(WAITING_KINDS))(
  'R21: %s: in every form a call that times out or is aborted leaves nothing, and the next waiter is woken',
  async (_, kind) => {
    const clock = new TestClock();
    const settings = { commandTimeout: DEADLINE_MS, lockWatchdogTimeout: 2_000 };
    const [client, other] = [await openClient({ clock, ...settings }), await openClient(settings)];
    const forms = Object.keys(kind.forms);
    const seen = await Promise.all(
      forms.map(async (form) => [form, await waitInLine(kind, form, client, other)] as const),
    );
    for (const [form, { timedOut, aborted, stayed, enteredEarly, afterMs }] of seen) {
      const limited = kind.endless?.includes(form) ? undefined : expect.stringMatching(/^(busy|ERR_LOCK_TIMEOUT)$/);
      expect({ form, timedOut, aborted, stayed, enteredEarly }).toEqual({
        form,
        timedOut: limited,
        aborted: 'ERR_LOCK_ABORTED',
        stayed: 'ok',
        enteredEarly: false,
      });
      expect(afterMs).toBeLessThan(WITHIN_MS);
    }
    await admin().del(...names.splice(0)); // the number of permits stays, by design
    await expectNothingLeft(5_000);
    await until(() => clock.timers === 0, 'no timer is left', 5_000);
  },
);
