import { afterEach, expect, test } from '@jest/globals';
import { HELP } from '../../../src/cli/help.js';
import { closeClients, inFlow, openClient } from '../../support/clients/lock-clients.js';
import { Command, runCommand } from '../../support/processes/command.js';
import { snippets } from '../../support/project/guide.js';
import { serverMajor } from '../../support/servers/server-version.js';
import { startServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';

afterEach(closeClients);

const shown = snippets('text')
  .filter(({ page }) => page === 'docs/cli.md')
  .map(({ code }) => code);

/** A text without what differs from run to run: ids, hosts, processes, addresses, versions and times. */
const plain = (text: string): string =>
  text
    .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
    .replace(/(orders|billing) \S+:\d+/g, '$1 HOST')
    .replace(/HOST [\da-f]{8}:/g, 'HOST ID:')
    .replace(/ at \S+:\d+/g, ' at ADDRESS')
    .replace(/server [\da-f]{8} \(port \d+\)/, 'server')
    .replace(/(Redis|Valkey) [\d.]+/g, 'VERSION')
    .replace(/\d+(\.\d+)? (ms|s)\b/g, 'TIME')
    .replace(/TIME (ahead|behind)/g, 'TIME apart')
    .replace(/ +/g, ' ');
const sortedRows = (text: string): string[] => plain(text).trimEnd().split('\n').sort();

test('docs/cli.md shows what the command prints', async () => {
  const server = await startServer();
  const url = server.url;
  const [orders, billing] = [
    await openClient({ url, clientName: 'orders' }),
    await openClient({ url, clientName: 'billing' }),
  ];
  await inFlow(async () => orders.getLock('order:42').lock());
  await inFlow(async () => orders.getReadWriteLock('catalog').readLock().lock());
  await inFlow(async () => billing.getFairLock('printer').lock());
  await orders.getSemaphore('uploads', { permits: 5 }).acquire(2);
  await orders.getPermitExpirableSemaphore('licenses', { permits: 3 }).acquire(60_000);
  const waiting = [
    inFlow(async () => billing.getLock('order:42').lock()),
    inFlow(async () => orders.getFairLock('printer').lock()),
  ];
  for (const each of waiting) each.catch(() => undefined);
  const waiters = async (name: string) => (await orders.inspect(name, { processes: true })).waiters;
  await until(async () => (await waiters('order:42')) === 1 && (await waiters('printer')) === 1, 'the calls wait');

  const run = async (...args: string[]) => (await runCommand([...args, '--url', url])).out;
  // The numbers of owners are drawn in the order of the calls.
  const numbered = (text: string) => text.replace(/ID:\d+/g, 'ID:N');
  expect(sortedRows(await run('ls')).map(numbered)).toEqual(sortedRows(shown[0]!).map(numbered));
  expect(numbered(plain(await run('inspect', 'printer')))).toBe(numbered(plain(shown[1]!)));
  if (serverMajor() >= 7) expect(plain(await run('doctor'))).toBe(plain(shown[2]!));
  const page = new Command(['ui', '--url', url]);
  await page.says('Ctrl-C ends the page.\n');
  const link = (text: string) => text.replace(/127.0.0.1:\d+\/\?token=[\w-]{32}/, 'LINK');
  expect(link(page.out)).toBe(link(shown[3]!));
  page.interrupt();
  expect(await page.ended).toBe(130);
  expect(shown[4]).toBe(`${HELP}\n`);
  await closeClients();
  await server.stop();
});
