import type { RedisServer, ServerAddress } from '../servers/servers.js';

/** Maps the announced addresses of servers to those of the proxies in front of them, in the same order. */
export function natMapOf(
  servers: readonly RedisServer[],
  proxies: readonly ServerAddress[],
): Record<string, ServerAddress> {
  return Object.fromEntries(
    servers.map(({ host, port }, at) => {
      const proxy = proxies[at] as ServerAddress;
      return [`${host}:${port}`, { host: proxy.host, port: proxy.port }];
    }),
  );
}
