// Runs the contract, contended and fault suites on one server, in a cluster and through Sentinel, one after the other,
// and once the tests that start clusters, sentinels and replicas of their own. Arguments: files or folders to run
// instead; HOLDFAST_TOPOLOGIES="cluster sentinel" picks some topologies for those that run on each.
import { spawn } from 'node:child_process';
import { RedisCluster } from '../../tests/support/servers/cluster.js';
import { findRedisBinary } from '../../tests/support/servers/redis-binary.mjs';
import { SentinelSetup } from '../../tests/support/servers/sentinel.js';
import { startServer } from '../../tests/support/servers/servers.js';

const TOPOLOGIES = (process.env.HOLDFAST_TOPOLOGIES ?? 'single cluster sentinel').split(' ');
const OF_THEIR_OWN = 'tests/topologies/';
const SUITES = ['tests/contracts/', 'tests/faults/', OF_THEIR_OWN];
const given = process.argv.length > 2 ? process.argv.slice(2) : SUITES;
const own = given.filter((path) => path.startsWith(OF_THEIR_OWN));
const others = given.filter((path) => !own.includes(path));

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

/** @param {string[]} paths @param {number} workers @param {Record<string, string>} env @returns {Promise<number>} */
function run(paths, workers, env = {}) {
  const args = ['run', '--silent', 'jest', '--', `--maxWorkers=${workers}`, '--testTimeout=60000', '--forceExit'];
  const child = spawn('npm', [...args, ...paths], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  return new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)));
}

process.env.HOLDFAST_TEST_REDIS_BINARY = (await findRedisBinary()).path;
const results = [];
for (const topology of others.length > 0 ? TOPOLOGIES : []) {
  console.log(`\n=== ${topology}`);
  const { server, nodes, stop } = await /** @type {() => ReturnType<(typeof STARTS)[string]>} */ (STARTS[topology])();
  const failed =
    (await run(others, 1, {
      HOLDFAST_TOPOLOGY: topology,
      HOLDFAST_TEST_REDIS_URL: server.url,
      HOLDFAST_TEST_NODES: JSON.stringify(nodes),
    })) !== 0;
  results.push({ topology, failed });
  await stop();
}
if (own.length > 0) {
  console.log('\n=== topologies of their own');
  results.push({ topology: 'of their own', failed: (await run(own, 2)) !== 0 });
}
console.log(
  `\nTopologies:\n${results.map(({ topology, failed }) => `  ${topology}: ${failed ? 'FAILED' : 'passed'}`).join('\n')}`,
);
process.exit(results.some(({ failed }) => failed) ? 1 : 0);
