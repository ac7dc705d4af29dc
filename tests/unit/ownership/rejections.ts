import { pause } from './scenarios/scenario.js';

/** Number of unhandled rejections that Node.js reports for a rejected promise, by its use. */
export async function unhandledRejections(rejected: () => Promise<unknown>): Promise<Record<string, number>> {
  let reported = 0;
  const count = (): void => {
    reported += 1;
  };
  const during = async (use: () => unknown): Promise<number> => {
    reported = 0;
    void use();
    await pause(1);
    await pause(1);
    return reported;
  };
  process.on('unhandledRejection', count);
  try {
    return {
      dropped: await during(rejected),
      awaited: await during(async () => {
        await rejected().then(
          () => undefined,
          () => undefined,
        );
      }),
      'awaited and caught': await during(async () => {
        try {
          await rejected();
        } catch {
          // the test checks whether this counts as handled
        }
      }),
      'awaited by an async function that no code awaits': await during(async () => {
        await rejected();
      }),
      caught: await during(() => rejected().catch(() => undefined)),
      then: await during(() => rejected().then(() => undefined)),
      finally: await during(() => rejected().finally(() => undefined)),
      'then, then, finally': await during(() =>
        rejected()
          .then(() => undefined)
          .then(() => undefined)
          .finally(() => undefined),
      ),
      'then, then, catch': await during(() =>
        rejected()
          .then(() => undefined)
          .then(() => undefined)
          .catch(() => undefined),
      ),
      'Promise.all': await during(() => Promise.all([rejected(), rejected()]).catch(() => undefined)),
    };
  } finally {
    process.off('unhandledRejection', count);
  }
}

export const expectedUnhandledRejections: Record<string, number> = {
  dropped: 1,
  awaited: 0,
  'awaited and caught': 0,
  'awaited by an async function that no code awaits': 1,
  caught: 0,
  then: 1,
  finally: 1,
  'then, then, finally': 1,
  'then, then, catch': 0,
  'Promise.all': 0,
};
