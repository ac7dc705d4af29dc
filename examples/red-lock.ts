// How do I keep a lock when one of several independent Redis servers is unavailable?
import { createClient, NoQuorumError } from 'holdfast';
import { startRedisServer } from '../tests/support/servers/redis-server.mjs';

const servers = await Promise.all([1, 2, 3].map(() => startRedisServer({ say: () => undefined })));
const clients = servers.map(({ url }) => createClient({ url, commandTimeout: 600 }));
for (const client of clients) client.events.on('connectionError', () => undefined);

const lock = clients[0]!.getRedLock(...clients.map((client) => client.getLock('example:billing')));

await lock.withLock(() => console.log('locked on three of three'));

await servers[0]!.stop();
await lock.withLock((hold) => console.log('locked on two of three, valid:', hold.validFor() > 0));

await servers[1]!.stop();
try {
  await lock.lock();
} catch (error) {
  if (!(error instanceof NoQuorumError)) throw error;
  console.log(
    error.code,
    error.results
      .map(({ outcome }) => outcome)
      .sort()
      .join(', '),
  );
}

await Promise.all(clients.map((client) => client.close()));
await servers[2]!.stop();
