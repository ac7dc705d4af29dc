export { shareTestServer, startTestClient } from './test-client.js';
export type { TestClient, TestConnection } from './test-client.js';
