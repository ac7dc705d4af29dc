/** The program of a subpath in a project with the installed package. */
export interface SubpathRow {
  /**
   * Packages that the project installs besides holdfast, ioredis and @types/node: the peers, and the dependencies of
   * the peers.
   */
  readonly packages: readonly string[];
  /** Packages that the project links, because npm cannot install two versions of one dependency without its registry. */
  readonly linked?: readonly string[];
  /** The output of `fixtures/subpaths/<name>.ts` as JSON. Its arguments are the URL of Redis and a new lock name. */
  readonly prints: object;
  /**
   * The peers that the subpath itself needs: without one of them, an import of the subpath says which package to install.
   */
  readonly needs: readonly string[];
  /** Compiler options besides those of the module format. */
  readonly compilerOptions?: object;
}

/** One row for each subpath. */
export const ROWS: Readonly<Record<string, SubpathRow>> = {
  decorators: { packages: [], prints: { doubled: 42, busy: true, refused: true }, needs: [] },
  http: { packages: [], prints: { inside: 2, busy: 423, retryAfter: '1', refused: true }, needs: [] },
  express: {
    packages: ['express', '@types/express'],
    prints: { inside: 2, busy: [409, '7'], named: true, refused: true },
    // The application imports it. The subpath needs only its types.
    needs: [],
    compilerOptions: { esModuleInterop: true },
  },
  fastify: {
    packages: ['fastify'],
    prints: { inside: 2, injected: true, busy: [409, '7', 'ERR_LOCK_TIMEOUT'], refused: true, closed: true },
    needs: [],
  },
  nest: {
    packages: ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs'],
    prints: { paid: 'paid 7', busy: [409, '7'], health: 'up', closed: true },
    needs: ['@nestjs/common', '@nestjs/core', 'rxjs'],
    compilerOptions: { experimentalDecorators: true, emitDecoratorMetadata: true },
  },
  otel: {
    packages: ['@opentelemetry/api', '@opentelemetry/instrumentation', '@opentelemetry/sdk-trace-node'],
    prints: { spans: ['holdfast.acquire', 'holdfast.hold'], refused: true },
    needs: ['@opentelemetry/api', '@opentelemetry/instrumentation'],
  },
  prometheus: {
    packages: ['prom-client'],
    prints: { holding: 1, refused: true },
    needs: ['prom-client'],
  },
  testing: {
    packages: [],
    linked: ['redis-memory-server'],
    prints: { busy: true, oneServer: true, separate: true, kept: true },
    needs: ['redis-memory-server'],
  },
  inspector: {
    packages: [],
    prints: { visitor: 403, types: ['text/html', 'text/css', 'text/javascript'], refused: true },
    needs: [],
  },
  'web-locks': {
    packages: [],
    prints: { taken: null, held: ['exclusive'], after: 'shared', refused: 'NotSupportedError' },
    needs: [],
  },
};
