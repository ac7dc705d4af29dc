/*
 * One process of the demo. Its flows contend for the orders, each section with a call nested in it that locks the same
 * order again. What it does to an order goes through the parent, in steps that nothing but the lock keeps apart.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, LockError, LockLostError, type Hold } from 'holdfast';
import { Random } from '../../tests/support/random.js';
import { stamp, type Answer, type ClientEvent, type Command, type FromWorker, type Question } from './messages.js';
import type { WorkerArguments } from './messages.js';

const WAIT_TIME = 1_000;
const LEASE_TIME = 3_000;
/** For what the parent has ordered: it is to happen, however busy the lock is. */
const PATIENT_WAIT_TIME = 15_000;
const WATCHDOG_TIMEOUT = 900;
const SHARE_OF_LONG_JOBS = 0.04;

const { name, redisUrl, orders, flows, seed, longJobs } = JSON.parse(process.argv[2]!) as WorkerArguments;
const random = new Random(name, seed);
const client = createClient({ url: redisUrl, lockWatchdogTimeout: WATCHDOG_TIMEOUT });

/** Holds that are open, by their owner. */
const open = new Map<string, Hold>();
const questions = new Map<number, (value: number) => void>();
let asked = 0;
let stopping = false;
/** While the parent has other plans for this process, its flows begin nothing new. */
let resting = false;
let busyFlows = 0;

const tell = (message: FromWorker): void => void process.send?.(message);

function ask(question: Question): Promise<number> {
  return new Promise((resolve) => {
    questions.set(++asked, resolve);
    tell({ ...question, id: asked });
  });
}

/** A section: one outermost hold, with whatever `work` does inside of it. */
async function section(
  flow: string,
  order: string,
  { waitTime = WAIT_TIME, leaseTime }: { waitTime?: number; leaseTime?: number | undefined },
  work: (hold: Hold) => Promise<void>,
): Promise<void> {
  const lock = client.getLock(order);
  tell({ say: 'wants', order, flow, at: stamp() });
  if (!(await lock.tryLock(waitTime, leaseTime))) return tell({ say: 'gave up', order, flow, at: stamp() });
  const hold = lock.currentHold()!;
  const { owner, signal } = hold;
  open.set(owner, hold);
  signal.addEventListener('abort', () => tell({ say: 'signalled', owner, at: stamp() }));
  try {
    await ask({ ask: 'enter', order, flow, owner, at: stamp(), until: stamp() + hold.validFor() });
    await work(hold);
  } finally {
    await ask({ ask: 'leave', order, flow, owner, at: stamp() });
    open.delete(owner);
    const at = stamp();
    const code = await lock.unlock().then(
      () => undefined,
      (error: unknown) => (error instanceof LockError ? error.code : String(error)),
    );
    tell({ say: 'unlocked', owner, at, ...(code !== undefined && { code }) });
  }
}

/** Locks by itself, as a function should that is called from anywhere; inside a section it re-enters. */
async function book(order: string, takes: number): Promise<void> {
  const lock = client.getLock(order);
  if (!(await lock.tryLock(WAIT_TIME, LEASE_TIME))) throw new Error(`${order} is busy inside of its own hold`);
  try {
    const seen = await ask({ ask: 'read', order });
    await pause(takes);
    if (!lock.currentHold()!.signal.aborted) await ask({ ask: 'write', order, value: seen + 1 });
  } finally {
    await lock.unlock();
  }
}

async function keepOrdering(flow: string): Promise<void> {
  for (let round = 0; !stopping; round++) {
    if (resting) {
      await pause(5);
      continue;
    }
    busyFlows += 1;
    const order = random.pick(orders);
    const long = longJobs && flow === flows[0] && (round === 0 || random.fraction() < SHARE_OF_LONG_JOBS);
    await section(flow, order, { leaseTime: long ? undefined : LEASE_TIME }, async () => {
      if (long) await pause(700 + random.below(400));
      await book(order, 20 + random.below(70));
    }).catch((error: unknown) => {
      // The code that lost its hold has stopped; the next round is another matter.
      if (!(error instanceof LockLostError)) throw error;
    });
    busyFlows -= 1;
    await pause(random.below(40));
  }
}

async function holdToTheEnd(order: string, leaseTime: number): Promise<void> {
  await section(flows[0]!, order, { waitTime: PATIENT_WAIT_TIME, leaseTime }, async (hold) => {
    if (!(await client.getLock(order).tryLock(WAIT_TIME, leaseTime))) throw new Error(`${order} is busy`);
    tell({ say: 'prolonged', owner: hold.owner, until: stamp() + hold.validFor() });
    tell({ say: 'in place', owner: hold.owner });
    await pause(60_000); // the parent kills this process meanwhile
  });
}

async function blockInside(order: string, leaseTime: number, blockFor: number): Promise<void> {
  await section(flows[0]!, order, { waitTime: PATIENT_WAIT_TIME, leaseTime }, async (hold) => {
    await book(order, 5);
    const seen = await ask({ ask: 'read', order });
    await ask({ ask: 'block', order, owner: hold.owner, at: stamp() });
    const until = stamp() + blockFor;
    while (stamp() < until);
    tell({ say: 'unblocked', at: stamp() });
    // No timer and no answer has run meanwhile, and yet the hold knows: its signal looks at the clock.
    if (!hold.signal.aborted) await ask({ ask: 'write', order, value: seen + 1 });
  });
}

/** The other flows of this process are through: whatever it does to an order now is what it was told to do. */
async function alone(work: () => Promise<void>): Promise<void> {
  resting = true;
  while (busyFlows > 0) await pause(5);
  await work();
  resting = false;
}

let ordering: Promise<unknown> | undefined;

async function obey(command: Command): Promise<void> {
  switch (command.do) {
    case 'start':
      ordering = Promise.all(flows.map((flow) => keepOrdering(flow)));
      await ordering;
      return;
    case 'hold':
      return alone(() => holdToTheEnd(command.order, command.leaseTime));
    case 'block':
      return alone(() => blockInside(command.order, command.leaseTime, command.blockFor));
    case 'stop':
      stopping = true;
      await ordering;
      await client.close();
      tell({ say: 'done' });
      process.disconnect();
  }
}

const failed = (error: unknown): void => {
  tell({ say: 'failed', message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
};
process.on('message', (message: Answer | Command) => {
  if ('do' in message) {
    obey(message).catch(failed);
    return;
  }
  questions.get(message.answers)?.(message.value);
  questions.delete(message.answers);
});
process.on('disconnect', () => process.exit());
process.on('unhandledRejection', failed);

const tellEvent = (order: string, event: ClientEvent): void => tell({ say: 'event', order, at: stamp(), ...event });
client.events.on('waiting', ({ lockName }) => tellEvent(lockName, { event: 'waiting' }));
client.events.on('acquired', ({ lockName, ...acquired }) => tellEvent(lockName, { event: 'acquired', ...acquired }));
client.events.on('released', ({ lockName, ...released }) => tellEvent(lockName, { event: 'released', ...released }));
client.events.on('leaseLost', ({ lockName, owner, reason }) =>
  tellEvent(lockName, { event: 'leaseLost', owner, reason }),
);
client.events.on('renewed', ({ lockName, owner }) => {
  tellEvent(lockName, { event: 'renewed', owner });
  const hold = open.get(owner);
  if (hold) tell({ say: 'prolonged', owner, until: stamp() + hold.validFor() });
});
await client.ready();
tell({ say: 'ready' });
