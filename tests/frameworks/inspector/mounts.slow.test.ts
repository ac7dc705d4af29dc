import { afterEach, describe, expect, test } from '@jest/globals';
import { Module, type NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import express from 'express';
import { fastify, type FastifyInstance } from 'fastify';
import { createRequire } from 'node:module';
import { createInspector, type Inspector } from '../../../src/integrations/inspector/index.js';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { OpenPage } from '../../support/http/event-stream.js';
import { closeServers, serve } from '../../support/http/http-server.js';
import { freshName } from '../../support/redis.js';

const express4 = createRequire(import.meta.url)('express-4') as typeof express;

class AppModule {
  readonly isEmpty = true;
}
Module({})(AppModule);

const OPTIONS: unknown = { logger: false, forceCloseConnections: true };
/** Nest declares its options as a class, and everybody passes a literal. */
const options = (): NestApplicationOptions => OPTIONS as NestApplicationOptions;

/** A running application with the inspector at /admin/locks. */
interface Mounted {
  readonly url: string;
  close?(): Promise<unknown>;
}

type Create = (basePath?: string) => Inspector;

function inFastify(app: FastifyInstance, create: Create): void {
  const inspector = create('/admin/locks');
  void app.register(async (locks) => {
    locks.removeAllContentTypeParsers();
    locks.addContentTypeParser('*', (_request, _payload, done) => done(null));
    locks.all('/admin/locks*', (request, reply) => {
      reply.hijack();
      inspector(request.raw, reply.raw);
    });
  });
}

const MOUNTS: Readonly<Record<string, (create: Create) => Promise<Mounted>>> = {
  'node:http': async (create) => ({ url: await serve(create('/admin/locks')) }),
  'Express 5': async (create) => ({ url: await serve(express().use('/admin/locks', create())) }),
  'Express 4': async (create) => ({ url: await serve(express4().use('/admin/locks', create())) }),
  'Express behind a parser of JSON, in a router': async (create) => {
    const router = express.Router().use('/locks', create());
    return { url: await serve(express().use(express.json()).use('/admin', router)) };
  },
  'Express 4 behind parsers of other bodies': async (create) => {
    const app = express4().use(express4.urlencoded({ extended: false }), express4.text());
    return { url: await serve(app.use('/admin/locks', create())) };
  },
  'Express with basePath': async (create) => ({
    url: await serve(express().use('/admin/locks/', create('/admin/locks/'))),
  }),
  Fastify: async (create) => {
    const app = fastify({ forceCloseConnections: true });
    inFastify(app, create);
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() };
  },
  'Nest on Express': async (create) => {
    const app = await NestFactory.create(AppModule, options());
    app.use('/admin/locks', create());
    await app.listen(0, '127.0.0.1');
    return { url: await app.getUrl(), close: () => app.close() };
  },
  'Nest on Fastify': async (create) => {
    const adapter = new FastifyAdapter({ forceCloseConnections: true });
    const app = await NestFactory.create<NestFastifyApplication>(AppModule, adapter, options());
    inFastify(app.getHttpAdapter().getInstance() as unknown as FastifyInstance, create);
    await app.listen(0, '127.0.0.1');
    return { url: await app.getUrl(), close: () => app.close() };
  },
};

afterEach(async () => {
  await closeServers();
  await closeClients();
});

describe.each(Object.entries(MOUNTS))('in %s', (_what, mount) => {
  test('the page, its files, its events and a force unlock work below the base path', async () => {
    const client = await openClient();
    const hold = await holdElsewhere(client.getLock(freshName()));
    const create: Create = (basePath) =>
      createInspector({ client, authorize: () => 'alice', actions: true, ...(basePath !== undefined && { basePath }) });
    const { url, close } = await mount(create);
    const base = `${url}/admin/locks`;
    try {
      const redirect = await fetch(base, { redirect: 'manual' });
      expect([redirect.status, redirect.headers.get('location')]).toEqual([308, './locks/']);
      const page = await fetch(base);
      expect([page.status, page.url]).toEqual([200, `${base}/`]);
      const html = await page.text();
      const files = [...html.matchAll(/(?:href|src)="(inspector\.\w+)"/g)].map(([, file]) => file!).sort();
      expect(files).toEqual(['inspector.css', 'inspector.js']);
      for (const file of files) {
        expect([file, (await fetch(new URL(file, page.url))).status]).toEqual([file, 200]);
      }
      expect((await fetch(`${base}/nothing`)).status).toBe(404);
      const events = await OpenPage.open(base);
      await events.shows(({ rows }) => rows.has(hold.lockName), 'the lock');
      expect(await events.unlock(hold.lockName, hold.owner)).toEqual([200, { freed: true }]);
      await events.shows(({ rows }) => !rows.has(hold.lockName), 'the lock is gone');
      events.close();
    } finally {
      await close?.();
    }
    await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  });
});
