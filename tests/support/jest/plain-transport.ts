/** Takes the place of the quick transport in tests with `HOLDFAST_PLAIN_TRANSPORT=1` (tests/jest.config.mjs). */
export { PlainTransport as QuickTransport } from '../../../src/redis/connections/transport.js';
