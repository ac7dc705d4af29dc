import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { EventEmitter, on, once } from 'node:events';
import { stat } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { NOT_OWNER, isInside, nested, outcome, pause, type OwnershipScenario } from './scenario.js';

/** The facilities of Node.js between a hold and the code that runs inside it. */
export const nodeScenarios: readonly OwnershipScenario[] = [
  {
    name: 'every kind of callback set up inside is inside',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const inCallback = (start: (done: () => void) => void): Promise<boolean> =>
        new Promise((resolve, reject) => start(() => void nested(newLock(name)).then(resolve, reject)));
      await lock.lock();
      const inside = {
        nextTick: await inCallback((done) => process.nextTick(done)),
        setImmediate: await inCallback((done) => setImmediate(done)),
        interval: await inCallback((done) => {
          const timer = setInterval(() => {
            clearInterval(timer);
            done();
          }, 1);
        }),
        emitter: await inCallback((done) => {
          const emitter = new EventEmitter().once('ready', done);
          setTimeout(() => emitter.emit('ready'), 1);
        }),
        promisified: await promisify<boolean>(
          (done) => void nested(newLock(name)).then((value) => done(null, value)),
        )(),
        file: await stat(process.execPath).then(() => nested(newLock(name))),
        sleep: await sleep(1).then(() => nested(newLock(name))),
      };
      await lock.unlock();
      return { inside, locked: await lock.isLocked() };
    },
    expected: {
      inside: {
        nextTick: true,
        setImmediate: true,
        interval: true,
        emitter: true,
        promisified: true,
        file: true,
        sleep: true,
      },
      locked: false,
    },
  },
  {
    name: 'a listener runs in the flow of the emitter, unless it is bound to its own',
    async run({ newLock, lockContext }, name) {
      const lock = newLock(name);
      const emitter = new EventEmitter();
      const seen: [string, boolean][] = [];
      await lock.lock();
      emitter.on('event', () => seen.push(['plain', isInside(lock)]));
      emitter.on(
        'event',
        AsyncResource.bind(() => seen.push(['bound', isInside(lock)])),
      );
      emitter.emit('event');
      lockContext.run(() => emitter.emit('event'));
      await lock.unlock();
      return { seen };
    },
    expected: {
      seen: [
        ['plain', true],
        ['bound', true],
        ['plain', false],
        ['bound', true],
      ],
    },
  },
  {
    name: 'events.once, events.on, streams and their iterators keep their consumer inside',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const emitter = new EventEmitter();
      await lock.lock();
      setTimeout(() => emitter.emit('ready'), 1);
      await once(emitter, 'ready');
      const afterOnce = await nested(newLock(name));
      setTimeout(() => {
        for (const row of [1, 2]) emitter.emit('row', row);
      }, 1);
      const inLoop: boolean[] = [];
      for await (const [row] of on(emitter, 'row') as AsyncIterable<[number]>) {
        inLoop.push(await nested(newLock(name)));
        if (row === 2) break;
      }
      for await (const _chunk of Readable.from(['a', 'b'])) inLoop.push(await nested(newLock(name)));
      const inPipeline: boolean[] = [];
      await pipeline(
        Readable.from(['a', 'b', 'c']),
        new Transform({
          objectMode: true,
          transform(chunk, _encoding, done) {
            setImmediate(done, null, chunk);
          },
        }),
        async (chunks: AsyncIterable<string>) => {
          for await (const _chunk of chunks) inPipeline.push(await nested(newLock(name)));
        },
      );
      const unlocked = await outcome(lock.unlock());
      return { afterOnce, inLoop, inPipeline, unlocked, locked: await lock.isLocked() };
    },
    expected: {
      afterOnce: true,
      inLoop: [true, true, true, true],
      inPipeline: [true, true, true],
      unlocked: 'ok',
      locked: false,
    },
  },
  {
    name: "the caller's own AsyncLocalStorage keeps its values, and holds are not lost in its scopes",
    async run({ newLock }, name) {
      const lock = newLock(name);
      const request = new AsyncLocalStorage<string>();
      const seen: unknown[] = [];
      await request.run('outer', async () => {
        await lock.lock();
        seen.push(request.getStore());
        await request.run('inner', async () => {
          seen.push(await nested(newLock(name)), request.getStore());
          await pause();
          seen.push(isInside(lock), request.getStore());
        });
        seen.push(request.getStore(), isInside(lock));
        request.enterWith('entered');
        seen.push(await nested(newLock(name)), request.getStore());
        seen.push(await outcome(lock.unlock()), request.getStore());
      });
      return { seen, after: request.getStore() };
    },
    expected: {
      seen: ['outer', true, 'inner', true, 'inner', 'outer', true, true, 'entered', 'ok', 'entered'],
      after: undefined,
    },
  },
  {
    name: 'a snapshot taken outside leads outside, one taken inside leads inside',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const outside = AsyncLocalStorage.snapshot();
      await lock.lock();
      const inside = AsyncLocalStorage.snapshot();
      const fromOutside = [await outside(() => nested(newLock(name))), await outside(() => outcome(lock.unlock()))];
      const fromInside = await new Promise<boolean>((resolve, reject) => {
        outside(() => setTimeout(() => void inside(() => nested(newLock(name))).then(resolve, reject), 1));
      });
      await lock.unlock();
      return { fromOutside, fromInside, locked: await lock.isLocked() };
    },
    expected: { fromOutside: [false, NOT_OWNER], fromInside: true, locked: false },
  },
  {
    name: 'code of another realm stays outside, and can use withLock',
    async run({ newLock }, name) {
      const lock = newLock(name);
      const realm = createContext({ lock });
      const inside = await (runInContext(
        '(async () => { await lock.lock(); return lock.currentHold() !== undefined; })()',
        realm,
      ) as Promise<boolean>);
      const unlocked = await outcome(lock.unlock());
      await lock.forceUnlock();
      const inWithLock = await (runInContext(
        'lock.withLock(async () => { await null; return lock.currentHold() !== undefined; })',
        realm,
      ) as Promise<boolean>);
      return { inside, unlocked, inWithLock, locked: await lock.isLocked() };
    },
    expected: { inside: false, unlocked: NOT_OWNER, inWithLock: true, locked: false },
  },
];
