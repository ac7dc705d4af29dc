// @ts-check
// Preloaded: the ioredis commands of this process become spans of its work, as under an agent.
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { createRequire } from 'node:module';
import { spans } from './span-count.mjs';

const processor = {
  onStart: () => undefined,
  /** @param {{ name: string }} span */
  onEnd: ({ name }) => void (spans.ofScripts += /^eval/.test(name) ? 1 : 0),
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};
const provider = new NodeTracerProvider({ spanProcessors: [processor] });
provider.register();
new IORedisInstrumentation().setTracerProvider(provider);
// It sees modules that are required. The import of the worker gets the same modules.
createRequire(import.meta.url)('ioredis');
