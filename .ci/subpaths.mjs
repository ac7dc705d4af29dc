// @ts-check

/**
 * The subpaths of the package. `src/integrations/<name>/index.ts` is the source of `holdfast/<name>`. A subpath has a row
 * here, its folder, an entry in `exports`, `typesVersions` and, for its peers, `peerDependencies` of package.json, and a
 * row in `tests/project/package/subpaths.ts`.
 *
 * `peers`: the packages that the subpath needs besides ioredis. All of them are optional peers.
 * `imports`: the values that the subpath imports of these packages. The build imports them through a file that names the
 * package if it is not installed: Node.js reports a missing package of a static import before any code runs.
 * `inlined`: packages whose code the build copies into the subpath.
 *
 * @type {Readonly<Record<string, { readonly peers: readonly string[]; readonly inlined?: readonly string[], readonly imports?: Readonly<Record<string, readonly string[]>> }>>}
 */
export const SUBPATHS = {
  decorators: { peers: [] },
  http: { peers: [] },
  express: { peers: ['express'] },
  fastify: { peers: ['fastify'], inlined: ['fastify-plugin'] },
  nest: {
    peers: ['@nestjs/common', '@nestjs/core', 'rxjs'],
    imports: {
      '@nestjs/common': ['Catch', 'ConfigurableModuleBuilder', 'Inject', 'Module'],
      '@nestjs/core': ['APP_FILTER', 'HttpAdapterHost'],
      rxjs: ['throwError'],
    },
  },
  otel: {
    peers: ['@opentelemetry/api', '@opentelemetry/instrumentation'],
    imports: {
      '@opentelemetry/api': ['context', 'SpanStatusCode', 'trace'],
      '@opentelemetry/instrumentation': ['InstrumentationBase'],
    },
  },
  prometheus: { peers: ['prom-client'], imports: { 'prom-client': ['Counter', 'Gauge', 'Histogram', 'register'] } },
  inspector: { peers: [] },
  testing: { peers: ['redis-memory-server'] },
  'web-locks': { peers: [] },
};
