import type { CountDownLatch } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { stamp } from '../../support/history/history-recorder.mjs';
import type { Random } from '../../support/random.js';
import type { Load } from './load.js';

const SLOWEST_MS = 300;
const PATIENCE_MS = 6_000;

let made = 0;

/** Each latch has its own name, derived from the drawn name. */
const latchName = (lock: string, ...others: readonly (string | number)[]): string => [lock, ...others].join('.');
export const latchLock = (latch: string): string => latch.split('.', 1)[0] as string;

/** A separate latch that two flows count down while a third waits: it opens after both count-downs, and not before. */
export async function countDown(load: Load, random: Random, lock: string, flow: number): Promise<void> {
  const { recorder, parts, clients } = load;
  const name = latchName(lock, flow, parts.name, ++made);
  const latch = clients.first.getCountDownLatch(name);
  // Of the same name in another database, and open long before: its message comes on the same channel.
  const twin = clients.elsewhere?.getCountDownLatch(name);
  const of = 2;
  let asked = 0;
  let counted = 0;
  let lastCountedAt = 0;
  try {
    if (!(await latch.trySetCount(of))) throw new Error(`${name} is set already`);
    recorder.write({ type: 'latch-set', latch: name, lock });
    const counting = Array.from({ length: of }, async () => {
      await pause(random.below(SLOWEST_MS));
      asked += 1;
      await latch.countDown().then(
        () => {
          counted += 1;
          lastCountedAt = stamp();
        },
        // Counted once or not at all.
        (error: unknown) => load.count(load.notReleased, error),
      );
    });
    const opened = latch.await(PATIENCE_MS).then((open) => {
      if (open) recorder.write({ type: 'latch-opened', latch: name, of, asked });
      else recorder.write({ type: 'latch-closed', latch: name, of, counted, lastCountedAt });
    });
    await Promise.all([opened, ...counting, ...(twin ? [openAtOnce(load, twin)] : [])]);
    load.sections += 1;
  } catch (error) {
    load.count(load.refused, error);
  } finally {
    await Promise.all([latch, ...(twin ? [twin] : [])].map((each) => remove(load, each)));
  }
}

async function openAtOnce(load: Load, latch: CountDownLatch): Promise<void> {
  try {
    await latch.trySetCount(1);
    await latch.countDown();
  } catch (error) {
    load.count(load.notReleased, error);
  }
}

/** Without a reply the count-down may have run or not. Later the latch is already open. */
async function remove(load: Load, latch: CountDownLatch): Promise<void> {
  for (let failed = 0; failed < 10; failed += 1) {
    try {
      await latch.delete();
      return;
    } catch (error) {
      load.count(load.notReleased, error);
    }
  }
}
