// @ts-check
// Preloaded: this process's commands of ioredis are spans of what it does, as under an agent.
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
// It sees what is required. The worker's import gets the same.
createRequire(import.meta.url)('ioredis');
