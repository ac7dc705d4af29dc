interface ExampleRedis extends AsyncDisposable {
  readonly url: string;
}

/** The Redis that REDIS_URL names, else a server of our own that ends with the example. */
export async function openRedis(): Promise<ExampleRedis> {
  const url = process.env.REDIS_URL;
  if (url) return { url, [Symbol.asyncDispose]: () => Promise.resolve() };
  const { startRedisServer } = await import('../../tests/support/servers/redis-server.mjs');
  const server = await startRedisServer();
  return { url: server.url, [Symbol.asyncDispose]: () => server.stop() };
}
