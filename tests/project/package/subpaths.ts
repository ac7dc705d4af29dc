/** The program of a subpath in a project with the installed package. */
export interface SubpathRow {
  /**
   * Packages that the project installs besides holdfast, ioredis and @types/node: the peers, and the dependencies of
   * the peers.
   */
  readonly packages: readonly string[];
  /** The output of `fixtures/subpaths/<name>.ts` as JSON. Its arguments are the URL of Redis and a new lock name. */
  readonly prints: object;
  /** For each peer, the stderr output of the program in a project without that peer. */
  readonly withoutPeer: Readonly<Record<string, RegExp>>;
  /** Compiler options besides those of the module format. */
  readonly compilerOptions?: object;
}

/** One row for each subpath. A peer that is imported statically is named by the message of Node itself. */
export const ROWS: Readonly<Record<string, SubpathRow>> = {
  decorators: { packages: [], prints: { doubled: 42, busy: true, refused: true }, withoutPeer: {} },
  http: { packages: [], prints: { inside: 2, busy: 423, retryAfter: '1', refused: true }, withoutPeer: {} },
  express: {
    packages: ['express', '@types/express'],
    prints: { inside: 2, busy: [409, '7'], named: true, refused: true },
    withoutPeer: { express: /Cannot find (?:package|module) 'express'/ },
    compilerOptions: { esModuleInterop: true },
  },
  fastify: {
    packages: ['fastify'],
    prints: { inside: 2, injected: true, busy: [409, '7', 'ERR_LOCK_TIMEOUT'], refused: true, closed: true },
    withoutPeer: { fastify: /Cannot find (?:package|module) 'fastify'/ },
  },
  nest: {
    packages: ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs'],
    prints: { paid: 'paid 7', busy: [409, '7'], health: 'up', closed: true },
    withoutPeer: {
      '@nestjs/common': /Cannot find (?:package|module) '@nestjs\/common/,
      '@nestjs/core': /Cannot find (?:package|module) '@nestjs\/core/,
      rxjs: /Cannot find (?:package|module) 'rxjs/,
    },
    compilerOptions: { experimentalDecorators: true, emitDecoratorMetadata: true },
  },
  otel: {
    packages: ['@opentelemetry/api', '@opentelemetry/instrumentation', '@opentelemetry/sdk-trace-node'],
    prints: { spans: ['holdfast.acquire', 'holdfast.hold'], refused: true },
    withoutPeer: {
      '@opentelemetry/instrumentation': /Cannot find (?:package|module) '@opentelemetry\/instrumentation'/,
      '@opentelemetry/api': /Cannot find (?:package|module) '@opentelemetry\/api'/,
    },
  },
  prometheus: {
    packages: ['prom-client'],
    prints: { holding: 1, refused: true },
    withoutPeer: { 'prom-client': /Cannot find (?:package|module) 'prom-client'/ },
  },
  inspector: {
    packages: [],
    prints: { visitor: 403, types: ['text/html', 'text/css', 'text/javascript'], refused: true },
    withoutPeer: {},
  },
};
