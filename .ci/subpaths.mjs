// @ts-check

/**
 * The subpaths of the package. `src/integrations/<name>/index.ts` is the source of `holdfast/<name>`. A subpath has a row
 * here, its folder, an entry in `exports`, `typesVersions` and, for its peers, `peerDependencies` of package.json, and a
 * row in `tests/project/package/subpaths.ts`.
 *
 * `peers`: the packages that the subpath needs besides ioredis. All of them are optional peers.
 * `inlined`: packages whose code the build copies into the subpath.
 *
 * @type {Readonly<Record<string, { readonly peers: readonly string[]; readonly inlined?: readonly string[] }>>}
 */
export const SUBPATHS = {
  decorators: { peers: [] },
  http: { peers: [] },
  express: { peers: ['express'] },
  fastify: { peers: ['fastify'], inlined: ['fastify-plugin'] },
  nest: { peers: ['@nestjs/common', '@nestjs/core', 'rxjs'] },
  otel: { peers: ['@opentelemetry/api', '@opentelemetry/instrumentation'] },
  prometheus: { peers: ['prom-client'] },
  inspector: { peers: [] },
};
