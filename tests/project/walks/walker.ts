import { build, type Plugin } from 'esbuild';
import { Redis } from 'ioredis';
import { readFileSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { Session, type Profiler } from 'node:inspector/promises';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type * as Library from '../../../src/index.js';
import { scriptText } from '../../../.ci/lua/script-text.cjs';
import type { SeenCommand } from '../../support/proxy/fault.js';
import { FaultProxy } from '../../support/proxy/proxy.js';
import { until } from '../../support/time/until.js';

/*
 * Runs each walk on the source of a checkout, and prints which functions of which files of `src` it enters: precise
 * coverage of V8 with the granularity of functions, from just before the call. Arguments: the URL of a Redis server, and
 * the root of the checkout (default: this one).
 */

/** The functions that a walk enters, by file of `src`. */
export type Entered = Readonly<Record<string, readonly string[]>>;

/** A walk is taken this often. What counts is what each repetition enters: a timer of another mechanism may run in one. */
const REPETITIONS = 4;
const LEASE_MS = 30_000;
const WAIT_MS = 5_000;

const [url, root = fileURLToPath(new URL('../../..', import.meta.url))] = process.argv.slice(2) as [string, string?];
const bundle = join(root, '.tmp', 'walks', `${process.pid}.mjs`);
process.once('exit', () => rmSync(bundle, { force: true }));

const scripts: Plugin = {
  name: 'lua',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.lua$/ }, ({ path }) => ({ contents: scriptText(readFileSync(path, 'utf8')), loader: 'text' })),
};

/** The source in one file, with its map. */
async function bundled(): Promise<{ library: typeof Library; text: string; map: SourceMap }> {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'src/index.ts')],
    outfile: bundle,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    sourcemap: 'external',
    plugins: [scripts],
  });
  const [map, code] = outputFiles.sort(
    (one, other) => Number(other.path.endsWith('.map')) - Number(one.path.endsWith('.map')),
  );
  await mkdir(dirname(bundle), { recursive: true });
  await writeFile(bundle, code!.text);
  const library = (await import(pathToFileURL(bundle).href)) as typeof Library;
  return {
    library,
    text: code!.text,
    map: new SourceMap(JSON.parse(map!.text) as ConstructorParameters<typeof SourceMap>[0]),
  };
}

const { library, text, map } = await bundled();
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];

/** The place of a function in the source, or undefined for code of a package. */
function placeOf({ functionName, ranges }: Profiler.FunctionCoverage): { file: string; name: string } | undefined {
  const offset = ranges[0]!.startOffset;
  let line = lineStarts.length - 1;
  while (lineStarts[line]! > offset) line -= 1;
  const entry = map.findEntry(line, offset - lineStarts[line]!);
  if (!('originalSource' in entry)) return undefined;
  const path = relative(join(root, 'src'), resolve(dirname(bundle), entry.originalSource));
  if (path.startsWith('..') || !path.endsWith('.ts')) return undefined;
  return {
    file: path.replaceAll('\\', '/'),
    name: `${functionName || 'anonymous'}:${entry.originalLine + 1}:${entry.originalColumn + 1}`,
  };
}

async function taken(): Promise<Profiler.FunctionCoverage[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result.find((script) => script.url === pathToFileURL(bundle).href)?.functions ?? [];
}

/** Counts what is entered between `begin()` and `end()`: `file`, a space, and the function. */
class Count {
  #common: Set<string> | undefined;

  async begin(): Promise<void> {
    await taken(); // and forgets what was counted until now
  }

  async end(): Promise<void> {
    const places = (await taken()).filter(({ ranges }) => ranges[0]!.count > 0).map(placeOf);
    const once = new Set(places.flatMap((place) => (place === undefined ? [] : [`${place.file} ${place.name}`])));
    this.#common = this.#common === undefined ? once : new Set([...this.#common].filter((place) => once.has(place)));
  }

  /** What each repetition entered. */
  get files(): Entered {
    const files: Record<string, string[]> = {};
    for (const place of [...(this.#common ?? [])].sort()) {
      const [file, called] = place.split(' ') as [string, string];
      (files[file] ??= []).push(called);
    }
    return files;
  }
}

const proxy = await FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(url).port) });
const admin = new Redis(url);
const names: string[] = [];
const freshName = (): string => {
  names.push(`walk:${process.pid}:${names.length}`);
  return names.at(-1)!;
};

/** A walk prepares what it needs, has its piece counted, and cleans up. */
type Walk = (count: Count) => Promise<void>;

const client = library.createClient({ url });
await client.ready();

/** A free lock: from the call, to Redis, and back to the caller. */
const tryLock: Walk = async (count) => {
  const lock = client.getLock(freshName());
  await count.begin();
  const got = await lock.tryLock(WAIT_MS, LEASE_MS);
  await count.end();
  if (!got) throw new Error('the lock was busy');
  await lock.unlock();
};

/** `unlock()` with a waiter of this client, which is parked: from the call until both calls have resolved. */
const handOver: Walk = async (count) => {
  const seen = library.createClient({ url: proxy.url });
  await seen.ready();
  const name = freshName();
  const lock = seen.getLock(name);
  await lock.lock(LEASE_MS);
  const second = library.lockContext.run(() => lock.acquire({ waitTime: WAIT_MS, leaseTime: LEASE_MS }));
  await until(() => busySince(name), 'the try after the subscription');
  await manyTurns();
  await count.begin();
  await lock.unlock();
  await second;
  await count.end();
  await (await second).release();
  await seen.close();
};

/** Whether the head has had its answer after it was subscribed. */
function busySince(name: string): boolean {
  const subscribed = proxy.log.findIndex((command) => command.name === 'SUBSCRIBE' && concerns(command, name));
  if (subscribed < 0) return false;
  return proxy.log.slice(subscribed + 1).some((command) => concerns(command, name) && command.answeredAt !== undefined);
}

const concerns = ({ args }: SeenCommand, name: string): boolean => args.some((arg) => arg.includes(name));

/** A reply has passed through the proxy, which is in this process, and the client has read it. */
async function manyTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
}

/** The watchdog renews one lock: from the end of one renewal to the end of the next. */
const renewal: Walk = async (count) => {
  const renewing = library.createClient({ url, lockWatchdogTimeout: 600 });
  await renewing.ready();
  const hold = await renewing.getLock(freshName()).acquire();
  const renewed = (): Promise<unknown> => new Promise((resolve) => renewing.events.once('renewed', resolve));
  await renewed();
  await nextTurn();
  await count.begin();
  await renewed();
  await count.end();
  await hold.release();
  await renewing.close();
};

/** Redis acquires and its reply is lost: from the call, through its error, until the release in the background is answered. */
const lostReply: Walk = async (count) => {
  const cut = library.createClient({ url: proxy.url, commandTimeout: 1_000 });
  await cut.ready();
  const name = freshName();
  const lock = cut.getLock(name);
  await cut.getLock(freshName()).isLocked();
  const sent = { command: ['EVALSHA', 'EVAL'], contains: name } as const;
  await count.begin();
  const lost = proxy.swallow({ ...sent, times: Infinity });
  await lock.tryLock(0, LEASE_MS).then(
    () => Promise.reject(new Error('the reply came')),
    () => undefined,
  );
  lost.lift();
  const before = proxy.log.length;
  const released = (): boolean =>
    proxy.log.slice(before).some((command) => concerns(command, name) && command.answeredAt !== undefined);
  await until(async () => released() && (await admin.exists(name)) === 0, 'the compensation');
  await manyTurns();
  await count.end();
  await cut.close();
};

const WALKS: Readonly<Record<string, Walk>> = { A: tryLock, B: handOver, C: renewal, D: lostReply };

const report: Record<string, Entered> = {};
for (const [name, walk] of Object.entries(WALKS)) {
  await walk(new Count()); // with a name of its own: no walk counts what is done once in a process
  const count = new Count();
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) await walk(count);
  report[name] = count.files;
}

console.log(JSON.stringify(report));
await client.close();
await proxy.close();
admin.disconnect();
