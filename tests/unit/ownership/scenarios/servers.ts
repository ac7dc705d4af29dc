import express from 'express';
import { Agent, createServer, request, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Section, exclusive, nested, outcome, type OwnershipAdapter, type OwnershipScenario } from './scenario.js';

async function listening(listener: RequestListener): Promise<Server> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return server;
}

/** Sends `requests` at a time, `rounds` times, over connections that are kept. */
async function answersFrom(server: Server, requests: number, rounds: number): Promise<Record<string, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: requests });
  const { port } = server.address() as AddressInfo;
  const get = (): Promise<string> =>
    new Promise((resolve, reject) => {
      request({ port, agent, host: '127.0.0.1' }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve(body)).on('error', reject);
      })
        .on('error', reject)
        .end();
    });
  const answers: Record<string, number> = {};
  for (let round = 0; round < rounds; round += 1) {
    for (const answer of await Promise.all(Array.from({ length: requests }, get))) {
      answers[answer] = (answers[answer] ?? 0) + 1;
    }
  }
  agent.destroy();
  await new Promise((resolve) => server.close(resolve));
  return answers;
}

const answersOf = async (
  listener: RequestListener,
  requests: number,
  rounds: number,
): Promise<Record<string, number>> => answersFrom(await listening(listener), requests, rounds);

/** Locks, works, and calls a service that locks again. */
async function handle({ newLock }: OwnershipAdapter, name: string, section: Section): Promise<string> {
  const lock = newLock(name);
  if (!(await lock.tryLock(5_000))) return 'busy';
  try {
    await section.work();
    return (await nested(newLock(name))) ? 'nested' : 'nested call refused';
  } finally {
    await lock.unlock();
  }
}

/** Requests over kept connections share sockets, and with them async resources that are older than their holds. */
export const serverScenarios: readonly OwnershipScenario[] = [
  {
    name: 'requests over kept connections exclude each other and re-enter',
    async run(adapter, name) {
      const section = new Section();
      const answers = await answersOf(
        (_request, response) => void handle(adapter, name, section).then((answer) => response.end(answer)),
        5,
        4,
      );
      return { answers, ...section.facts(), locked: await adapter.newLock(name).isLocked() };
    },
    expected: { answers: { nested: 20 }, ...exclusive(20), locked: false },
  },
  {
    name: 'a server created inside a hold serves inside, one created through lockContext.run does not',
    async run({ newLock, lockContext }, name) {
      const lock = newLock(name);
      const listener: RequestListener = (_request, response) =>
        void nested(newLock(name)).then((reentered) => response.end(String(reentered)));
      await lock.lock();
      const inside = await listening(listener);
      const outside = await lockContext.run(() => listening(listener));
      const answers = await lockContext.run(async () => [
        await answersFrom(inside, 1, 2),
        await answersFrom(outside, 1, 2),
      ]);
      await lock.unlock();
      return { answers, locked: await lock.isLocked() };
    },
    expected: { answers: [{ true: 2 }, { false: 2 }], locked: false },
  },
  {
    name: 'Express: a module-level lock, a nested service',
    async run(adapter, name) {
      const section = new Section();
      const app = express();
      app.get('/', async (_request, response) => {
        response.send(await handle(adapter, name, section));
      });
      const answers = await answersOf(app as RequestListener, 5, 2);
      return { answers, ...section.facts(), locked: await adapter.newLock(name).isLocked() };
    },
    expected: { answers: { nested: 10 }, ...exclusive(10), locked: false },
  },
  {
    name: 'Express: middleware locks and calls next, the handler nests and unlocks',
    async run({ newLock }, name) {
      const section = new Section();
      const lock = newLock(name);
      const app = express();
      app.use(async (_request, _response, next) => {
        await lock.lock();
        next();
      });
      app.get('/', async (_request, response) => {
        await section.work();
        const reentered = await nested(newLock(name));
        response.send(`${reentered} ${String(await outcome(lock.unlock()))}`);
      });
      const answers = await answersOf(app as RequestListener, 5, 2);
      return { answers, ...section.facts(), locked: await lock.isLocked() };
    },
    expected: { answers: { 'true ok': 10 }, ...exclusive(10), locked: false },
  },
];
