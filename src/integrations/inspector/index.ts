export { createInspector, type Inspector } from './server/create-inspector.js';
export type { Authorization, InspectorOptions } from './server/options.js';
