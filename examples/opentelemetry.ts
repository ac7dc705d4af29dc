// How do I see in a trace that a call waited for a lock, and what it did inside?
import { trace } from '@opentelemetry/api';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { createClient } from 'holdfast';
import { HoldfastInstrumentation } from 'holdfast/otel';
import { openRedis } from './support/redis.js';

const spans = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
provider.register();
registerInstrumentations({ instrumentations: [new HoldfastInstrumentation()] });
const tracer = trace.getTracer('shop');

await using redis = await openRedis();
await using elsewhere = createClient({ url: redis.url });
await using client = createClient({ url: redis.url });
const name = 'example:traced-order';

/** Another process holds the lock for a while, so the payment has to wait. */
const other = await elsewhere.getLock(name).acquire();
setTimeout(() => void other.release(), 50);

await tracer.startActiveSpan('payment', async (span) => {
  await client.getLock(name).withLock(async () => tracer.startActiveSpan('charge the card', (inner) => inner.end()));
  span.end();
});
await provider.forceFlush();

const finished = spans.getFinishedSpans();
const payment = finished.find(({ name }) => name === 'payment')!;
const traceOf = finished.filter((span) => span.spanContext().traceId === payment.spanContext().traceId);
/** Prints a span, and below it the spans that it caused. */
function print(id: string, indent = ''): void {
  const children = traceOf.filter(({ parentSpanContext }) => parentSpanContext?.spanId === id);
  for (const child of children.sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])) {
    console.log(`${indent}${child.name}`);
    print(child.spanContext().spanId, `${indent}  `);
  }
}
console.log('payment');
print(payment.spanContext().spanId, '  ');
