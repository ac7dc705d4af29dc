export { HoldfastInstrumentation } from './instrumentation.js';
export type { HoldfastInstrumentationConfig } from './instrumentation.js';
