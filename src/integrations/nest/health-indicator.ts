import { RefusedError, type LockClient, type LockErrorCode } from '../../index.js';

/** What Terminus reads: the state of each dependency by its key. */
export type HoldfastHealth = Record<string, { status: 'up' } | { status: 'down'; code: LockErrorCode | 'unknown' }>;

/** The options of {@link HoldfastHealthIndicator.isHealthy}. */
export interface HoldfastHealthOptions {
  /** Another client than that of the module, for applications with several clients. */
  client?: LockClient | undefined;
}

/**
 * A health indicator for `@nestjs/terminus`. It asks Redis one question, whose answer takes at most the `commandTimeout` of
 * the client.
 *
 * @example
 * \@Get('health')
 * \@HealthCheck()
 * check() {
 *   return this.health.check([() => this.holdfast.isHealthy('locks')]);
 * }
 */
export class HoldfastHealthIndicator {
  readonly #client: LockClient;

  constructor(client: LockClient) {
    this.#client = client;
  }

  /**
   * Asks Redis whether it answers.
   *
   * @param key - the name of the dependency in the report.
   * @returns `up`, also if Redis answers that a permission is missing; else `down` with the code of the error.
   */
  async isHealthy(key = 'holdfast', { client = this.#client }: HoldfastHealthOptions = {}): Promise<HoldfastHealth> {
    try {
      await client.getLock('holdfast:health').isLocked();
    } catch (error) {
      if (error instanceof RefusedError) return { [key]: { status: 'up' } };
      return { [key]: { status: 'down', code: (error as { code?: LockErrorCode }).code ?? 'unknown' } };
    }
    return { [key]: { status: 'up' } };
  }
}
