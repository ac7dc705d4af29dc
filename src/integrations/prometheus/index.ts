export { collectMetrics } from './collect-metrics.js';
export type { CollectMetricsOptions, MeasuredClient } from './collect-metrics.js';
