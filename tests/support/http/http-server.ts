import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

const servers: Server[] = [];

/** Serves an application of Express, or any listener, on a free port. Returns the URL without a slash at its end. */
export async function serve(listener: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Closes the servers that `serve` has opened, with their remaining connections. */
export async function closeServers(): Promise<void> {
  await Promise.all(
    servers.splice(0).map(async (server) => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    }),
  );
}
