import { execFileSync } from 'node:child_process';

/** The version of the servers that this run starts: 8 for Redis 8.0.2. A Valkey counts from Redis 7.2 on. */
export function serverMajor(): number {
  const { HOLDFAST_REDIS_BINARY: named, HOLDFAST_TEST_REDIS_BINARY: found } = process.env;
  const said = execFileSync(named ?? found ?? 'redis-server', ['--version'], { encoding: 'utf8' });
  return Number(/v=(\d+)/.exec(said)?.[1]);
}

/** An ACL rule for every channel; Redis before 7 (6.2) has none, and allows them all. */
export const allChannels = (): string => (serverMajor() >= 7 ? '&*' : '');
