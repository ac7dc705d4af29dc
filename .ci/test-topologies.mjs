// Runs the contract, contended and fault suites on one server, in a cluster and through Sentinel, one after the other.
// HOLDFAST_TOPOLOGIES="cluster sentinel" picks some; further arguments go to jest.
import { spawn } from 'node:child_process';
import { RedisCluster } from '../tests/support/cluster.js';
import { findRedisBinary } from '../tests/support/redis-binary.mjs';
import { SentinelSetup } from '../tests/support/sentinel.js';
import { startServer } from '../tests/support/servers.js';

const TOPOLOGIES = (process.env.HOLDFAST_TOPOLOGIES ?? 'single cluster sentinel').split(' ');
const SUITES = ['tests/contracts/', 'tests/faults/'];
const given = process.argv.slice(2);

const named = ({ host, port }) => `${host}:${port}`;

/**
 * Starts the servers; says where the suite's own one is, who else is there, and how to end them.
 * @type {Record<string, () => Promise<{ server: { url: string }, nodes: object, stop: () => Promise<unknown> }>>}
 */
const STARTS = {
  async single() {
    const server = await startServer();
    return { server, nodes: {}, stop: () => server.stop() };
  },
  async cluster() {
    // The tests know one server; the others are there for the client to find.
    const cluster = await RedisCluster.start({ lopsided: true });
    const [server, ...others] = cluster.servers;
    return { server, nodes: { others: others.map(named) }, stop: () => cluster.stop() };
  },
  async sentinel() {
    const setup = await SentinelSetup.start();
    const server = await setup.master();
    const sentinels = setup.sentinels.map(({ address }) => address);
    return { server, nodes: { master: named(server), sentinels }, stop: () => setup.stop() };
  },
};

function run(env) {
  const args = [
    'run',
    '--silent',
    'jest',
    '--',
    '--testPathIgnorePatterns=/node_modules/',
    '--maxWorkers=1',
    '--testTimeout=60000',
    '--forceExit',
  ];
  const child = spawn('npm', [...args, ...(given.length > 0 ? given : SUITES)], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  return new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)));
}

process.env.HOLDFAST_TEST_REDIS_BINARY = (await findRedisBinary()).path;
const results = [];
for (const topology of TOPOLOGIES) {
  console.log(`\n=== ${topology}`);
  const { server, nodes, stop } = await /** @type {() => ReturnType<(typeof STARTS)[string]>} */ (STARTS[topology])();
  const failed =
    (await run({
      HOLDFAST_TOPOLOGY: topology,
      HOLDFAST_TEST_REDIS_URL: server.url,
      HOLDFAST_TEST_NODES: JSON.stringify(nodes),
    })) !== 0;
  results.push({ topology, failed });
  await stop();
}
console.log(
  `\nTopologies:\n${results.map(({ topology, failed }) => `  ${topology}: ${failed ? 'FAILED' : 'passed'}`).join('\n')}`,
);
process.exit(results.some(({ failed }) => failed) ? 1 : 0);
