import { afterEach, expect, jest, test } from '@jest/globals';
import type { Hello } from '../../../src/integrations/inspector/messages.js';
import { EventStream } from '../../../src/integrations/inspector/live/event-stream.js';
import { Hub } from '../../../src/integrations/inspector/live/hub.js';
import { closeClients, openClient } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';

/* An open page is asked again, here more often than every half a minute. */

afterEach(async () => {
  await closeServers();
  await closeClients();
});

const EVERY_MS = 50;
const VIEW = { search: '', select: null, id: null, rows: 200 };
const HELLO = { now: 0, version: '', actions: false, csrf: null, user: null, view: VIEW } as unknown as Hello;

/** Opens a page whose user is asked again. */
async function openPage(isAllowed: () => Promise<boolean>): Promise<OpenPage> {
  const hub = new Hub(await openClient(), EVERY_MS);
  const base = await serve((_request, response) => {
    response.once('close', hub.open(new EventStream(response), VIEW, isAllowed, HELLO));
  });
  return OpenPage.open(base);
}

const ended = ({ isEnded }: OpenPage): boolean => isEnded;

test('a page whose user is no longer admitted ends', async () => {
  const answers = [true, true, false];
  const page = await openPage(() => Promise.resolve(answers.shift()!));
  await page.shows(ended, 'the stream has ended');
  expect(page.last('bye')).toEqual({ reason: 'not allowed' });
  expect(answers).toEqual([]);
});

test('a page ends whose question is unanswered when the next one is due', async () => {
  let asked = 0;
  const page = await openPage(() => new Promise(() => (asked += 1)));
  await page.shows(ended, 'the stream has ended');
  expect([page.last('bye'), asked]).toEqual([{ reason: 'not allowed' }, 1]);
});

test('a page ends if `authorize` fails, and a warning has the reason', async () => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  try {
    const page = await openPage(() => Promise.reject(new Error('no session store')));
    await page.shows(ended, 'the stream has ended');
    expect(page.last('bye')).toEqual({ reason: 'not allowed' });
    expect(warned.mock.calls).toEqual([[expect.stringContaining('no session store'), { code: 'HOLDFAST_INSPECTOR' }]]);
  } finally {
    warned.mockRestore();
  }
});
