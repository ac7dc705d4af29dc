import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type LockClient } from '../../src/client/create-client.js';
import { ClusterClients } from '../support/clients/cluster-clients.js';
import { holdElsewhere, inFlow, outcome } from '../support/clients/lock-clients.js';
import { OpenPage } from '../support/http/event-stream.js';
import { Command, runCommand } from '../support/processes/command.js';
import { MASTER_NAME, SentinelSetup } from '../support/servers/sentinel.js';

/* The command on a cluster and behind Sentinel, which the arguments name. */

const bench = new ClusterClients({ replicas: 1 });
let sentinel: SentinelSetup;
const clients: LockClient[] = [];
const commands: Command[] = [];

beforeAll(async () => {
  sentinel = await SentinelSetup.start();
}, 60_000);
afterEach(async () => {
  for (const command of commands.splice(0)) {
    command.interrupt();
    await command.ended;
  }
  await Promise.all(clients.splice(0).map((client) => client.close({ releaseHolds: true })));
});
afterAll(() => sentinel.stop());

interface Setup {
  /** The arguments that lead the command to the servers. */
  args(): Promise<string[]>;
  open(clientName: string): Promise<LockClient>;
  /** Lets a replica take over from the master that has this name. */
  failover(name: string): Promise<unknown>;
}

const SETUPS: Readonly<Record<string, Setup>> = {
  'a cluster': {
    async args() {
      // One node is enough: it knows the others.
      const [first] = await bench.cluster.masters();
      return ['--cluster', `${first!.host}:${first!.port}`];
    },
    open: (clientName) => bench.open({ clientName }),
    failover: async (name) => bench.cluster.failover((await bench.cluster.shardOf(name)).master),
  },
  Sentinel: {
    async args() {
      return ['--sentinel', `${MASTER_NAME}@${sentinel.sentinels.map(({ host, port }) => `${host}:${port}`).join()}`];
    },
    async open(clientName) {
      const client = createClient({ redis: sentinel.connection(), clientName, lockWatchdogTimeout: 3_000 });
      clients.push(client);
      await client.ready();
      return client;
    },
    failover: () => sentinel.failover(),
  },
};

describe.each(Object.entries(SETUPS))('on %s', (_what, { args, open, failover }) => {
  /** Locks on several masters, if there are several. */
  const names = Array.from({ length: 6 }, (_, at) => bench.freshName(`cli-${at}`));

  async function start(...words: string[]): Promise<Command> {
    const command = new Command([...words, ...(await args())]);
    commands.push(command);
    return command;
  }

  test('inspect shows the owner with its process, wherever the lock is, and exits with 1 for a free name', async () => {
    const client = await open('shop');
    for (const name of names) {
      const hold = await holdElsewhere(client.getLock(name));
      const { code, out, err } = await runCommand(['inspect', name, ...(await args())]);
      expect([code, err]).toEqual([0, '']);
      expect(out).toContain(`owner     ${hold.owner}, 1 hold\n          shop `);
      await hold.release();
    }
    expect((await runCommand(['inspect', names[0]!, ...(await args())])).code).toBe(1);
  }, 60_000);

  test('watch tells of acquisitions, waiters, hand-overs and releases, also after a failover', async () => {
    const [client, other] = [await open('shop'), await open('till')];
    const name = names[0]!;
    const command = await start('watch', name, '--interval', '0.05');
    await command.says('kind      free');
    const held = await holdElsewhere(client.getLock(name));
    await command.says(/acquired {5}shop /);
    const waiting = inFlow(() => other.getLock(name).acquire());
    await command.says(/waiters {6}0 -> 1/);
    await held.release();
    await command.says(/(handed over|acquired) .*till /);
    await (await waiting).release();
    await command.says(/released {5}till /);
    await failover(name);
    const before = command.out.length;
    const after = await inFlow(async () => {
      for (;;) {
        const hold = await client
          .getLock(name)
          .acquire()
          .catch(() => undefined);
        if (hold !== undefined) return { hold };
      }
    });
    await command.says(/acquired {5}shop [^]*acquired {5}shop /);
    expect(command.out.slice(before)).toContain('acquired');
    await after.hold.release();
    command.interrupt();
    expect([await command.ended, command.err]).toEqual([130, '']);
  }, 90_000);

  test('unlock frees the lock of the owner that it showed, by question and by owner', async () => {
    const client = await open('shop');
    const [asked, named] = [names[1]!, names[2]!];
    const holds = [await holdElsewhere(client.getLock(asked)), await holdElsewhere(client.getLock(named))];
    const question = new Command(['unlock', asked, ...(await args())], { terminal: { columns: 160, rows: 30 } });
    await question.says('Type the name of the lock to free it: ');
    expect(question.out).toContain(`owner     ${holds[0]!.owner}`);
    question.type(`${asked}\n`);
    expect(await question.ended).toBe(0);
    const other = `${holds[1]!.owner}999`;
    const wrong = ['unlock', named, '--yes', '--owner', other, ...(await args())];
    expect(await runCommand(wrong)).toMatchObject({ code: 1, out: 'this owner does not have the lock\n' });
    const right = ['unlock', named, '--yes', '--owner', holds[1]!.owner, ...(await args())];
    expect(await runCommand(right)).toEqual({ code: 0, out: 'freed\n', err: '' });
    for (const name of [asked, named]) expect((await client.inspect(name)).kind).toBe('free');
    for (const hold of holds) expect(await outcome(hold.release())).toBe('ERR_LOCK_LOST');
  }, 60_000);

  test('ui shows the locks of every master, and frees one', async () => {
    const client = await open('shop');
    const holds = await Promise.all(names.map((name) => holdElsewhere(client.getLock(name))));
    const command = await start('ui', '--json', '--actions');
    await command.says('}\n');
    const { url } = JSON.parse(command.out) as { url: string };
    const [, secret = ''] = /'holdfast-session', '([\w-]+)'/.exec(await (await fetch(url)).text()) ?? [];
    const page = await OpenPage.open(new URL(url).origin, '', { 'holdfast-session': secret });
    await page.shows(({ rows }) => names.every((name) => rows.has(name)), 'all rows', 30_000);
    expect(await page.unlock(names[3]!, holds[3]!.owner)).toEqual([200, { freed: true }]);
    expect((await client.inspect(names[3]!)).kind).toBe('free');
    await page.shows(({ rows }) => !rows.has(names[3]!), 'the row is gone', 30_000);
    expect(page.last('problems')).toEqual([]);
    page.close();
    await Promise.allSettled(holds.map((hold) => hold.release()));
  }, 60_000);
});
