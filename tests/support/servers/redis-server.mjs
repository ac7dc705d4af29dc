// @ts-check
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisMemoryServer } from 'redis-memory-server';
import { findRedisBinary } from './redis-binary.mjs';

/**
 * A standalone server on a free loopback port that saves nothing and ends with this process, whatever ends that.
 *
 * @param {import('./redis-binary.mjs').SearchOptions} [options]
 */
export async function startRedisServer(options) {
  const { path } = await findRedisBinary(options);
  // redis-memory-server quotes a path with blanks twice; a link has none.
  const linkFolder = path.includes(' ') ? mkdtempSync(join(tmpdir(), 'holdfast-redis-')) : undefined;
  const systemBinary = linkFolder ? join(linkFolder, 'redis-server') : path;
  if (linkFolder) symlinkSync(path, systemBinary);
  const server = new RedisMemoryServer({ binary: { systemBinary }, instance: { ip: '127.0.0.1' } });
  const url = `redis://${await server.getHost()}:${await server.getPort()}`;
  return {
    url,
    binary: path,
    async stop() {
      await server.stop();
      if (linkFolder) rmSync(linkFolder, { recursive: true });
    },
  };
}
