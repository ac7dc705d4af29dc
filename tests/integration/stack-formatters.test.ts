import { afterEach, expect, jest, test } from '@jest/globals';
import { closeClients, inFlow, openClient, outcome } from '../support/clients/lock-clients.js';
import { freshName } from '../support/redis.js';
import { LONG_MS, until } from '../support/time/until.js';

/* Tools of an application replace `Error.prepareStackTrace`. The places in our messages come from there. */

const { prepareStackTrace } = Error;
afterEach(async () => {
  Error.prepareStackTrace = prepareStackTrace;
  await closeClients();
});

const FORMATTERS: [string, typeof Error.prepareStackTrace][] = [
  ['a list', (_, frames): unknown => frames],
  ['a list of what has no text', (): unknown => [Object.create(null)]],
  ['a number', () => 5],
  ['nothing', () => undefined],
  [
    'an error',
    () => {
      throw new TypeError('the formatter failed');
    },
  ],
];

test.each(FORMATTERS)(
  'with a formatter of stacks that makes %s of them, the calls do what they do',
  async (_, format) => {
    const client = await openClient({ callSites: true });
    const lock = client.getLock(freshName());
    Error.prepareStackTrace = format;
    const hold = await inFlow(() => lock.acquire());
    const stranger = await inFlow(() => outcome(lock.unlock()));
    const listed = client.holds().map(({ lockName, callSite }) => [lockName, typeof callSite]);
    const nested = await outcome(hold.run(() => lock.withLock(() => client.holds().length)));
    const closed = await outcome(client.close({ drain: 1, releaseHolds: true }));
    Error.prepareStackTrace = prepareStackTrace;
    expect({ stranger, listed, nested, closed }).toEqual({
      stranger: 'ERR_LOCK_NOT_OWNER',
      listed: [[lock.name, 'string']],
      nested: 'ok',
      closed: 'ok',
    });
  },
);

test('with a formatter and an emitWarning() that throw, a call that waits long behind a hold of its process goes on', async () => {
  const client = await openClient({ callSites: true });
  const lock = client.getLock(freshName());
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => {
    throw new TypeError('the application has replaced it');
  });
  Error.prepareStackTrace = () => {
    throw new TypeError('the formatter failed');
  };
  const hold = await inFlow(() => lock.acquire());
  const waits = inFlow(() => lock.acquire());
  await until(() => warned.mock.calls.length > 0, 'it warns', LONG_MS);
  Error.prepareStackTrace = prepareStackTrace;
  expect(String(warned.mock.calls[0]![0])).toContain(lock.name);
  warned.mockRestore();
  await hold.release();
  await (await waits).release();
});
