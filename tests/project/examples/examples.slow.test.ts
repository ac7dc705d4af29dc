import { afterEach, expect, test } from '@jest/globals';
import { runExample } from '../../support/processes/example-process.js';
import { projectFiles, readProjectFile } from '../../support/project/project-files.js';
import { admin, testRedisUrl } from '../../support/redis.js';

/** The facts that each example prints, in their order. */
const FACTS: Record<string, readonly RegExp[]> = {
  abort: [
    /^AbortError \(ERR_LOCK_ABORTED\), because Error: the browser has gone$/,
    /^with a time limit: AbortError, timed out: true$/,
    /^locked afterwards: false$/,
  ],
  'await-using': [
    /^paid 20$/,
    /^ {2}locked afterwards: false$/,
    /^nothing to pay$/,
    /^ {2}locked afterwards: false$/,
    /^RangeError: a negative amount$/,
    /^ {2}locked afterwards: false$/,
    /^ERR_LOCK_TIMEOUT: "example:invoice:12" was not free within 100 ms; increase waitTime or try again later$/,
    /^tryAcquire: null$/,
  ],
  'begin-end-service': [/^ann begins: true$/, /^bob begins: false$/, /^ann saves, hold count 2$/, /^bob begins: true$/],
  'bullmq-customers': [/^jobs completed: 6, failed: 0$/, /^at once: [2-6], of one customer: 1$/],
  'count-down-latch': [/^closed: true$/, /^open within 50 ms: false$/, /^both got through: true$/, /^count: 0$/],
  'cron-once': [/^runs: [2-9], skipped on other machines: [1-9]\d*$/, /^at least 500 ms apart: true$/],
  'express-handler': [
    /^201 ordered$/,
    /^201 ordered$/,
    /^201 ordered$/,
    /^409 sold out$/,
    /^409 sold out$/,
    /^apples left: 0, inside at once: 1$/,
  ],
  'express-requests': [
    /^second request: 423 Locked, Retry-After: 2 s$/,
    /^another order: 200$/,
    /^first request: paid 7$/,
    /^the client disconnected, and the lock is free$/,
  ],
  'fair-lock': [
    /^printing a letter$/,
    /^3 jobs are in the queue$/,
    /^may I pass\? no$/,
    /^printing a poster$/,
    /^printing a ticket$/,
    /^printing an invoice$/,
  ],
  fencing: [
    /^slow: token 1$/,
    /^next: token 2, written: true$/,
    /^slow: written: false$/,
    /^slow: ERR_LOCK_LOST$/,
    /^ledger: by the next one$/,
  ],
  'group-multi-lock': [
    /^500 orders locked$/,
    /^order:700 is free: true$/,
    /^order:7 re-entered$/,
    /^locked afterwards: false$/,
  ],
  'lease-lost': [
    /^valid for (?:[12]\d\d|[1-9]\d) ms$/,
    /^signal: aborted$/,
    /^event: leaseLost example:ledger \(expired\)$/,
    /^valid for 0 ms$/,
    /^unlock: ERR_LOCK_LOST$/,
    /^ledger: written by the next one$/,
  ],
  'migrating-from-redlock': [
    /^redlock {3}acquire, release$/,
    /^holdfast {2}acquire, release$/,
    /^redlock {3}using$/,
    /^holdfast {2}withLock$/,
    /^redlock {3}inside \d+\.\d ms after the release$/,
    /^holdfast {2}inside \d+\.\d ms after the release$/,
    /^redlock {3}nested: refused$/,
    /^holdfast {2}nested: entered, 2 holds$/,
  ],
  'multi-lock': [/^ann 110, bob 90$/],
  'nest-orders': [
    /^two clients: true$/,
    /^busy: 423 Locked, Retry-After: 2 s$/,
    /^another order: paid 8$/,
    /^first request: paid 7$/,
    /^the report has 2 lines$/,
    /^the application has stopped$/,
    /^locked afterwards: false$/,
  ],
  'non-reentrant-lock': [
    /^rebuilt$/,
    /^ERR_LOCK_NON_REENTRANT: "example:rebuild"$/,
    /^locked afterwards: false$/,
    /^in turn: refused$/,
  ],
  opentelemetry: [/^payment$/, /^ {2}holdfast\.acquire$/, /^ {2}holdfast\.hold$/, /^ {4}charge the card$/],
  'permit-expirable-semaphore': [
    /^id: 32 hex digits, free: 1$/,
    /^valid for more than 9 s: true$/,
    /^free after the block: 1$/,
    /^both: 2$/,
    /^the lost one is given back: false$/,
  ],
  prometheus: [/^held now: 1$/, /^sections of orders: 4$/],
  'read-write-lock': [/^readers at once: 3$/, /^price: 12$/, /^to write while reading: ERR_LOCK_UPGRADE$/],
  'red-lock': [
    /^locked on three of three$/,
    /^locked on two of three, valid: true$/,
    /^ERR_LOCK_NO_QUORUM acquired, failed, failed$/,
  ],
  'reentrant-nesting': [
    /^depositTwice\(10\): hold count 1$/,
    ...Array<RegExp>(3).fill(/^deposit\(10\): hold count 2$/),
    /^depositTwice\(1\): hold count 1$/,
    ...Array<RegExp>(3).fill(/^deposit\(1\): hold count 2$/),
    /^balance: 133$/,
    /^locked afterwards: false$/,
  ],
  semaphore: [/^made: true$/, /^at once: 3$/, /^taken: 2$/, /^two more: false$/, /^free: 3$/],
  shutdown: [
    /^the server is closed$/,
    /^the report is written$/,
    /^the client is closed, drained: true, left: 0$/,
    /^the request that ran: taken$/,
    /^locked afterwards: false$/,
  ],
  'spin-lock': [/^counter: 10$/, /^locked afterwards: false$/],
  'try-lock': [
    /^first: got it, its lease ends in (?:9\d\d\d|10000) ms$/,
    /^impatient: busy, gave up after [1-9]\d{2,} ms$/,
    /^patient: got it, its lease ends in (?:9\d\d\d|10000) ms$/,
  ],
  'with-lock-signal': [
    /^imported 10 rows$/,
    /^stopped: ERR_LOCK_LOST, gone$/,
    /^withLock rejected with ERR_LOCK_LOST, caused by the body's AbortError$/,
  ],
  'worker-pool': [
    /^in lockContext\.run: outside the hold of the set-up$/,
    /^around it: inside$/,
    /^jobs at once: [23], of one customer: 1$/,
  ],
};

const files = projectFiles('examples', '.ts').filter((path) => path.split('/').length === 2);
const names = files.map((path) => path.slice('examples/'.length, -'.ts'.length));

/** A semaphore stays when no process uses it. */
const STAYS = ['example:slots', 'example:seats'];

afterEach(() => admin().del(...STAYS));

test('every example has its facts here, begins with its question, and is short', () => {
  expect(Object.keys(FACTS)).toEqual(names);
  const texts = files.map((path) => readProjectFile(path).split('\n'));
  expect(texts.filter(([question]) => !/^\/\/ [A-Z].*\?$/.test(question ?? '')).map(([question]) => question)).toEqual(
    [],
  );
  expect(Math.max(...texts.map((lines) => lines.length))).toBeLessThan(100);
});

test.each(Object.entries(FACTS))('the example %s ends on its own and prints its facts', async (name, facts) => {
  const { code, stdout, stderr } = await runExample([`${name}.ts`], { REDIS_URL: testRedisUrl() });
  const lines = stdout.trim().split('\n');
  expect(lines).toEqual(facts.map((fact) => expect.stringMatching(fact)));
  expect(stderr).not.toMatch(/HOLDFAST_/);
  expect(code).toBe(0);
});

test('npm run example lists the examples with their questions and refuses another name', async () => {
  const [listed, refused] = await Promise.all([
    runExample(['support/run.ts'], {}),
    runExample(['support/run.ts', 'no-such-example'], {}),
  ]);
  expect(listed.stdout.trim().split('\n')).toEqual(names.map((name) => expect.stringMatching(`^${name} .*\\?$`)));
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('no example no-such-example') });
});
