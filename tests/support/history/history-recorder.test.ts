import { afterEach, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Hold } from '../../../src/holding/hold.js';
import { check } from './history.js';
import { HistoryRecorder, readHistory, stamp } from './history-recorder.mjs';
import { closeClients, inFlow, openClient, openProxy } from '../clients/lock-clients.js';
import { LOCK_SCRIPTS } from '../lua/lock-scripts.js';
import { freshName } from '../redis.js';
import { until } from '../time/until.js';

afterEach(closeClients);

/** As much of a hold as the recorder looks at. */
class Held {
  readonly #abort = new AbortController();
  readonly owner: string;
  leftMs = 30_000;
  constructor(owner: string) {
    this.owner = owner;
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  validFor(): number {
    return this.leftMs;
  }
  lose(reason: unknown): void {
    this.leftMs = 0;
    this.#abort.abort(reason);
  }
}

test('the checker reads what the recorder writes, also from a file with a torn last line', () => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-history-'));
  try {
    const path = join(directory, 'A.jsonl');
    const recorder = new HistoryRecorder('A', path);
    const outer = new Held('o:1');
    const nested = new Held('o:1');
    const first = recorder.invoked('x', 1_000);
    recorder.granted(first, outer);
    const second = recorder.invoked('x');
    recorder.granted(second, nested, { parent: outer });
    recorder.releasing(nested);
    recorder.released(nested);
    outer.leftMs = Infinity;
    recorder.confirm('o:1');
    outer.lose({ code: 'ERR_LOCK_LOST' });
    recorder.releasing(outer);
    recorder.released(outer, { code: 'ERR_LOCK_LOST' });
    const third = recorder.invoked('x');
    recorder.refused(third, Object.assign(new Error('away'), { outcome: 'unknown' }));
    const fourth = recorder.invoked('x');
    recorder.refused(fourth, 'busy');
    recorder.close();
    writeFileSync(path, '{"at":', { flag: 'a' });
    // A busy machine may have stopped this process meanwhile.
    const events = readHistory([path]).filter(({ type }) => type !== 'stalled');
    expect(events.map(({ type }) => type)).toEqual([
      'acquire-invoke',
      'acquire-ok',
      'acquire-invoke',
      'acquire-ok',
      'valid',
      'release-invoke',
      'release-ok',
      'valid',
      'valid',
      'loss-signal',
      'release-invoke',
      'release-fail',
      'acquire-invoke',
      'acquire-unknown',
      'acquire-invoke',
      'acquire-fail',
    ]);
    expect(events).toContainEqual(expect.objectContaining({ type: 'valid', until: Infinity }));
    expect(events).toContainEqual(expect.objectContaining({ type: 'loss-signal', cause: 'ERR_LOCK_LOST' }));
    expect(events.find((event) => event.type === 'acquire-ok' && event.parent !== undefined)).toBeDefined();
    expect(check(events)).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a blocked event loop is recorded as a stall that covers it', async () => {
  const recorder = new HistoryRecorder('A');
  const start = stamp();
  while (stamp() < start + 100);
  const end = stamp();
  await until(() => recorder.events.some(({ type }) => type === 'stalled'), 'the stall is written down');
  recorder.close();
  const stall = recorder.events.find((event) => event.type === 'stalled')!;
  expect(stall.type === 'stalled' && stall.from).toBeLessThanOrEqual(start);
  expect(stall.at).toBeGreaterThanOrEqual(end);
});

test.each(['withLock', 'unlock'] as const)(
  'the rest of the lease at the end of a nested hold is recorded before the request: %s',
  async (way) => {
    const { proxy, url } = await openProxy();
    const lock = (await openClient({ url })).getLock(freshName());
    const recorder = new HistoryRecorder('A');
    const [SHORT_MS, LONG_MS] = [2_000, 60_000];
    /** By the last word that was written down. */
    const validFor = (hold: string): number => {
      const told = recorder.events.findLast((event) => event.type === 'valid' && event.hold === hold);
      return told?.type === 'valid' ? told.until - told.at : NaN;
    };
    const partly = proxy.holdReply({ sha: LOCK_SCRIPTS.get('release-partial')!.sha });
    await inFlow(async () => {
      const first = recorder.invoked(lock.name);
      const outer = await lock.acquire({ leaseTime: SHORT_MS });
      recorder.granted(first, outer);
      const second = recorder.invoked(lock.name);
      const granted = (hold: Hold): void => {
        recorder.granted(second, hold, { parent: outer });
        expect(validFor(`${first}!`)).toBeGreaterThan(SHORT_MS);
      };
      const nested = async (): Promise<void> => {
        if (way === 'withLock') {
          await lock.withLock({ leaseTime: LONG_MS }, async (hold) => {
            granted(hold);
            recorder.watchRelease(hold);
            await Promise.resolve();
          });
        } else {
          await lock.lock(LONG_MS);
          const hold = lock.currentHold()!;
          granted(hold);
          await recorder.recordRelease(hold, () => lock.unlock());
        }
      };
      const over = nested();
      await until(() => partly.count > 0, 'the server has answered');
      const types = recorder.events.map(({ type }) => type);
      expect(types).toContain('release-invoke');
      expect(validFor(`${first}!`)).toBeLessThan(SHORT_MS);
      partly.lift();
      await over;
      await outer.release();
    });
    recorder.close();
  },
);

test('a lease that a nested call extended is checked after the time limit for loss reports', async () => {
  const recorder = new HistoryRecorder('A');
  const hold = new Held('o:1');
  hold.leftMs = 20;
  recorder.granted(recorder.invoked('x'), hold);
  const granted = stamp();
  hold.leftMs = 500;
  const asked = () => recorder.events.filter(({ type }) => type === 'valid');
  await until(() => asked().length > 0, 'the question is sent');
  expect(asked()[0]!.at - granted).toBeGreaterThan(20 + 250);
  hold.lose({ code: 'ERR_LOCK_LOST' });
  recorder.close();
  expect(check(recorder.events)).toEqual([]);
});
