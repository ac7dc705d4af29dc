import { expect, test } from '@jest/globals';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { runExample, type Ended } from '../../support/processes/example-process.js';
import { testRedisBinary } from '../../support/redis.js';

const LIMIT_MS = 60_000;
const CHECKS = [
  'sections entered',
  'nested holds',
  'overlaps between holds inside their own deadlines',
  'updates of the orders',
  'lost holds signalled',
  "the killed process's lock taken over",
  'renewals by the watchdog',
  'hand-offs',
  'left behind',
];

const runDemo = (env: Record<string, string>): Promise<Ended> =>
  runExample(['demo/main.ts'], { HOLDFAST_REDIS_BINARY: testRedisBinary(), ...env }, LIMIT_MS);

/** The lines of the summary by the name of their check. */
function summary({ stdout }: Ended): Map<string, { verdict: string; found: string }> {
  const lines = [...stdout.matchAll(/^ {2}(ok|FAILED) +(.+?) {2,}(\S.*)$/gm)];
  return new Map(lines.map(([, verdict, name, found]) => [name!, { verdict: verdict!, found: found! }]));
}

/** The picture that the run has drawn; its folder is removed. */
function takePicture({ stdout }: Ended): string {
  const file = /^Timeline: (.+\.svg)$/m.exec(stdout)?.[1];
  if (file === undefined || !existsSync(file)) throw new Error(`no picture in: ${stdout}`);
  const picture = readFileSync(file, 'utf8');
  rmSync(dirname(file), { recursive: true });
  return picture;
}

test(
  'the demo kills one holder and blocks another, and all of its checks pass',
  async () => {
    const ended = await runDemo({ HOLDFAST_DEMO_SECONDS: '3' });
    const found = summary(ended);
    expect([...found.keys()]).toEqual(CHECKS);
    expect([...found].filter(([, { verdict }]) => verdict !== 'ok')).toEqual([]);
    expect(found.get('overlaps between holds inside their own deadlines')!.found).toBe('0');
    expect(found.get('lost holds signalled')!.found).toMatch(/^([1-9]\d*) of \1, exactly once$/);
    expect(found.get('hand-offs')!.found).toMatch(
      /^[1-9]\d*, p50 \d+\.\d ms, p99 \d+\.\d ms \(\d+ inside a process\)$/,
    );
    expect(Number.parseInt(found.get('sections entered')!.found)).toBeGreaterThan(10);

    expect(ended.stdout).toMatch(
      /^ +\d+\.\d\d s {2}worker-3 is killed \(kill -9\) while it holds order:42, hold count 2;/m,
    );
    expect(ended.stdout).toMatch(/s {2}worker-\d takes order:42 over from worker-3, \d+\.\d\d s after the kill$/m);
    expect(ended.stdout).toMatch(/s {2}worker-2 is told that it has lost order:41 \(expired\)$/m);
    expect(ended.stdout).not.toContain('\x1b');
    const picture = takePicture(ended);
    expect(picture).toMatch(/^<svg [\s\S]*<\/svg>$/);
    for (const text of ['order:41', 'order:42', 'order:43', 'worker-3 killed -9', 'all checks passed']) {
      expect(picture).toContain(`>${text.includes('killed -9') ? '✕ ' : ''}${text}</text>`);
    }
    expect(ended.code).toBe(0);
  },
  LIMIT_MS,
);

test(
  'when a lock is freed under its holders, the demo sees them overlap and fails',
  async () => {
    const ended = await runDemo({
      HOLDFAST_DEMO_SECONDS: '2',
      HOLDFAST_DEMO_SABOTAGE: 'overlap',
      HOLDFAST_DEMO_LIVE: '1',
      NO_COLOR: '1',
    });
    const found = summary(ended);
    expect([...found.keys()]).toEqual(CHECKS);
    expect(found.get('overlaps between holds inside their own deadlines')).toEqual({
      verdict: 'FAILED',
      found: expect.stringMatching(/^[1-9]\d*, the first: worker-\d and worker-\d in order:43$/),
    });
    expect(takePicture(ended)).toContain('>failed: ');
    // Drawn in place: each frame begins by going up over the one before.
    const frames = ended.stdout.split(/\x1b\[\d+A/);
    expect(frames.length).toBeGreaterThan(10);
    expect(frames.some((frame) => /order:4\d {2}worker-\d\/[abc] {2}hold count 2/.test(frame))).toBe(true);
    expect(ended.code).toBe(1);
  },
  LIMIT_MS,
);

test(
  'with --ui the demo prints the link of the page, and ends the page with itself',
  async () => {
    const settings = { HOLDFAST_REDIS_BINARY: testRedisBinary(), HOLDFAST_DEMO_SECONDS: '2' };
    const ended = await runExample(['demo/main.ts', '--ui'], settings, LIMIT_MS);
    const [link] = /^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}$/m.exec(ended.stdout) ?? [];
    expect(link).toBeDefined();
    await expect(fetch(link!)).rejects.toThrow('fetch failed');
    takePicture(ended);
    expect(ended.code).toBe(0);
  },
  LIMIT_MS,
);
