import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { lockName, type LockClient } from '../../../src/index.js';
import { HoldfastInstrumentation } from '../../../src/integrations/otel/index.js';
import { closeClients, holdElsewhere, openClient, outcome } from '../../support/clients/lock-clients.js';
import { readProjectFile } from '../../support/project/project-files.js';
import { admin, freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

const spans = new InMemorySpanExporter();
const tracers = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
let exported: InMemoryMetricExporter;
let meters: MeterProvider;
let instrumentation: HoldfastInstrumentation;
let client: LockClient;

beforeAll(() => tracers.register());
afterAll(async () => {
  await tracers.shutdown();
  trace.disable();
  context.disable();
});
beforeEach(async () => {
  spans.reset();
  exported = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  meters = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter: exported, exportIntervalMillis: 3_600_000 })],
  });
  instrumentation = new HoldfastInstrumentation({ groupOf: (name) => name.split(':')[0] });
  instrumentation.setTracerProvider(tracers);
  instrumentation.setMeterProvider(meters);
  client = await openClient();
});
afterEach(async () => {
  instrumentation.disable();
  await meters.shutdown();
  await closeClients();
});

const named = (name: string): ReadableSpan[] => spans.getFinishedSpans().filter((span) => span.name === name);

/** The newest value of each metric, with its attributes. */
async function metrics(): Promise<Record<string, { attributes: object; value: unknown }[]>> {
  await meters.forceFlush();
  const { scopeMetrics = [] } = exported.getMetrics().at(-1) ?? {};
  return Object.fromEntries(
    scopeMetrics.flatMap(({ metrics: all }) =>
      all.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        dataPoints.map(({ attributes, value }) => ({ attributes, value })),
      ]),
    ),
  );
}

async function waitFor(ms: number): Promise<void> {
  const since = performance.now();
  await until(() => performance.now() - since > ms, `${ms} ms have passed`);
}

describe('spans', () => {
  test('the body of withLock is a child of the hold, and the hold a child of the span of the caller', async () => {
    const lock = client.getLock(freshName());
    const tracer = tracers.getTracer('test');
    await tracer.startActiveSpan('request', async (request) => {
      await lock.withLock(async () => {
        await admin().ping();
        tracer.startSpan('inside').end();
      });
      tracer.startSpan('after').end();
      request.end();
    });
    const [request] = named('request');
    const [hold] = named('holdfast.hold');
    expect(hold!.parentSpanContext?.spanId).toBe(request!.spanContext().spanId);
    expect(named('inside')[0]!.parentSpanContext?.spanId).toBe(hold!.spanContext().spanId);
    expect(named('after')[0]!.parentSpanContext?.spanId).toBe(request!.spanContext().spanId);
    expect(hold!.attributes).toEqual({
      'holdfast.lock.name': lock.name,
      'holdfast.lock.kind': 'lock',
      'holdfast.lock.mode': 'exclusive',
      'holdfast.client.id': client.id,
      'holdfast.hold.owner': expect.stringContaining(client.id),
      'holdfast.hold.count': 1,
      'holdfast.hold.end': 'released',
    });
    expect(hold!.instrumentationScope).toMatchObject({
      name: 'holdfast',
      version: (JSON.parse(readProjectFile('package.json')) as { version: string }).version,
    });
  });

  test('an acquisition has a span only if it waited longer than minWait', async () => {
    const lock = client.getLock(freshName());
    instrumentation.setConfig({ minWait: 60_000 });
    await lock.withLock(() => undefined);
    expect(named('holdfast.acquire')).toEqual([]);
    instrumentation.setConfig({ minWait: 20 });
    const hold = await holdElsewhere(lock);
    const tracer = tracers.getTracer('test');
    const waiting = tracer.startActiveSpan('request', async (request) => {
      await lock.withLock(() => undefined);
      request.end();
    });
    await until(() => client.stats().waits === 1, 'it waits');
    await waitFor(30);
    await hold.release();
    await waiting;
    const [span, ...others] = named('holdfast.acquire');
    expect(others).toEqual([]);
    expect(span!.attributes).toMatchObject({
      'holdfast.lock.name': lock.name,
      'holdfast.acquire.outcome': 'granted',
      'holdfast.acquire.handed_off': expect.any(Boolean),
      'holdfast.acquire.nested': false,
    });
    expect(span!.duration[0] * 1e3 + span!.duration[1] / 1e6).toBeGreaterThan(20);
    expect(span!.parentSpanContext?.spanId).toBe(named('request')[0]!.spanContext().spanId);
  });

  test('a lost hold is an error, and a busy lock is none', async () => {
    const lock = client.getLock(freshName());
    instrumentation.setConfig({ minWait: 0 });
    const hold = await holdElsewhere(lock);
    expect(await lock.tryAcquire()).toBe(null);
    await lock.forceUnlock();
    await outcome(hold.release());
    const [lost] = named('holdfast.hold').filter(({ attributes }) => attributes['holdfast.hold.end'] === 'lost');
    expect(lost).toMatchObject({ status: { code: SpanStatusCode.ERROR } });
    expect(lost!.attributes['holdfast.hold.lost_reason']).toBe('forced');
    const busy = named('holdfast.acquire').filter(
      ({ attributes }) => attributes['holdfast.acquire.outcome'] === 'busy',
    );
    expect(busy.map(({ status }) => status.code)).toEqual([SpanStatusCode.UNSET]);
  });

  test('after disable() nothing is traced, the body runs, and spans of open holds have ended', async () => {
    const lock = client.getLock(freshName());
    const hold = await lock.acquire();
    instrumentation.disable();
    expect(named('holdfast.hold')).toHaveLength(1);
    await hold.release();
    expect(await lock.withLock(() => 'done')).toBe('done');
    expect(named('holdfast.hold')).toHaveLength(1);
    instrumentation.enable();
    await lock.withLock(() => undefined);
    expect(named('holdfast.hold')).toHaveLength(2);
  });
});

describe('metrics', () => {
  test('are in seconds, have the group and never the name, and count what is held and pending', async () => {
    const lock = client.getLock(`order:${freshName()}`);
    await Promise.all([lock.withLock(() => undefined), lock.withLock(() => undefined)]);
    expect(client.stats()).toMatchObject({ handOvers: 1, waits: 1 });
    const hold = await holdElsewhere(lock);
    expect(await lock.tryLock()).toBe(false);
    const waiting = lock.acquire();
    await until(() => client.stats().waits === 2, 'it waits');
    await waitFor(30);
    const attributes = {
      'holdfast.lock.kind': 'lock',
      'holdfast.lock.mode': 'exclusive',
      'holdfast.lock.group': 'order',
    };
    expect(await metrics()).toMatchObject({
      'holdfast.acquire.pending': [{ attributes, value: 1 }],
      'holdfast.hold.active': [{ attributes, value: 1 }],
      'holdfast.acquire.timeouts': [{ attributes, value: 1 }],
    });
    await hold.release();
    const second = await waiting;
    await lock.forceUnlock();
    await outcome(second.release());
    const all = await metrics();
    expect(all).toMatchObject({
      'holdfast.acquire.pending': [{ attributes, value: 0 }],
      'holdfast.hold.active': [{ attributes, value: 0 }],
      'holdfast.acquire.handoffs': [{ attributes, value: client.stats().handOvers }],
      'holdfast.hold.lost': [{ attributes: { ...attributes, 'holdfast.hold.lost_reason': 'forced' }, value: 1 }],
    });
    const granted = all['holdfast.acquire.duration']!.find(({ attributes: { ...each } }) =>
      Object.values(each).includes('granted'),
    );
    const { sum, count } = granted!.value as { sum: number; count: number };
    expect(count).toBe(4);
    expect(sum).toBeGreaterThan(0.03);
    expect(sum).toBeLessThan(5);
    expect(JSON.stringify(all)).not.toContain(lock.name);
  });

  test('count down what disable() no longer observes', async () => {
    const hold = await client.getLock(freshName()).acquire();
    instrumentation.disable();
    const { 'holdfast.hold.active': active } = await metrics();
    expect(active!.map(({ value }) => value)).toEqual([0]);
    await hold.release();
  });
});

test('the group is that of lockName, unless groupOf returns one; spans have it beside the name', async () => {
  instrumentation.setConfig({ groupOf: (name) => (name.startsWith('user:') ? 'users' : undefined) });
  const id = freshName();
  await client.getLock(lockName`order:${id}`).withLock(() => undefined);
  await client.getLock(lockName`user:${id}`).withLock(() => undefined);
  const held = (await metrics())['holdfast.hold.duration'];
  expect(held?.map(({ attributes }) => attributes)).toMatchObject([
    { 'holdfast.lock.group': 'order:{}' },
    { 'holdfast.lock.group': 'users' },
  ]);
  expect(named('holdfast.hold').map(({ attributes }) => attributes)).toMatchObject([
    { 'holdfast.lock.name': `order:${id}`, 'holdfast.lock.group': 'order:{}' },
    { 'holdfast.lock.name': `user:${id}`, 'holdfast.lock.group': 'user:{}' },
  ]);
});

test('an invalid option is refused', () => {
  expect(() => new HoldfastInstrumentation({ minWait: -1 })).toThrow('a number of at least 0 (ms)');
  expect(() => new HoldfastInstrumentation({ groupOf: 'order' as never })).toThrow('a function of the lock name');
});
