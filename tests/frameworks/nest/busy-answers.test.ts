import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  Controller,
  Post,
  UseFilters,
  type DynamicModule,
  type INestApplication,
  type NestApplicationOptions,
} from '@nestjs/common';
import { ExternalContextCreator, NestFactory } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { lastValueFrom } from 'rxjs';
import { WebSocket } from 'ws';
import type { Hold, LockClient } from '../../../src/index.js';
import { HoldfastModule, LockTimeoutFilter } from '../../../src/integrations/nest/index.js';
import { closeClients, holdElsewhere, openClient } from '../../support/clients/lock-clients.js';
import { send } from '../../support/http/http-client.js';
import { freshName } from '../../support/redis.js';
import { until } from '../../support/time/until.js';

/* What the filter of the module answers for a busy lock. The decorators are called: these files have no `experimentalDecorators`. */

let client: LockClient;
let key: string;
let hold: Hold;
const apps: INestApplication<Server>[] = [];

beforeEach(async () => {
  client = await openClient();
  key = freshName();
  hold = await holdElsewhere(client.getLock(key));
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await hold.release();
  await closeClients();
});

/** A class whose method `pay` finds the lock busy, as `@Locked` or a call in it would. */
function payingClass() {
  return class Orders {
    async pay(): Promise<string> {
      return client.getLock(key).withLock({ waitTime: 0 }, () => 'paid');
    }
  };
}

type PayingClass = ReturnType<typeof payingClass>;

function decorate(target: PayingClass, ...decorators: (MethodDecorator | ClassDecorator)[]): PayingClass {
  const descriptor = Object.getOwnPropertyDescriptor(target.prototype, 'pay')!;
  for (const decorator of decorators) {
    (decorator as MethodDecorator)(target.prototype, 'pay', descriptor);
  }
  return target;
}

const OPTIONS: unknown = { logger: false, forceCloseConnections: true };
/** Nest declares its options as a class, and everybody passes a literal. */
const options = (): NestApplicationOptions => OPTIONS as NestApplicationOptions;

async function start(
  imports: DynamicModule[],
  controller: PayingClass,
  provider?: PayingClass,
): Promise<INestApplication<Server>> {
  const providers = provider === undefined ? [] : [provider];
  const module = { module: payingClass(), imports, controllers: [controller], providers };
  const app: INestApplication<Server> = await NestFactory.create(module, options());
  apps.push(app);
  return app;
}

function controller(): PayingClass {
  const target = decorate(payingClass(), Post('pay'), MessagePattern('pay'));
  Controller()(target);
  return target;
}

const listen = async (app: INestApplication<Server>): Promise<string> => {
  await app.listen(0, '127.0.0.1');
  return `127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
};

const MESSAGE = 'another request holds the lock of this resource; try again in 3 s';

describe('with two clients', () => {
  const main = (filter: object | boolean) => () => HoldfastModule.forRoot({ client, filter });
  const audit =
    (extras: object = {}) =>
    () =>
      HoldfastModule.forRoot({ client, name: 'audit', ...extras });

  test.each<[string, (() => DynamicModule)[], [number, string | undefined]]>([
    ['the filter of the client without a name', [main({ status: 409, retryAfter: 3 }), audit()], [409, '3']],
    ['in either order, it', [audit(), main({ status: 409, retryAfter: 3 })], [409, '3']],
    ['with `filter: false`, no filter', [main(false), audit()], [500, undefined]],
    ['a filter that a named client asks for', [main(false), audit({ filter: { retryAfter: 4 } })], [423, '4']],
  ])('%s answers', async (_title, modules, expected) => {
    const app = await start(
      modules.map((module) => module()),
      controller(),
    );
    const { status, headers, text } = await send(`http://${await listen(app)}/pay`).answer;
    expect([status, headers['retry-after']]).toEqual(expected);
    expect(text).not.toContain(key);
  });
});

const filter = { retryAfter: 3 };

test('a message to a microservice gets an error with the message, which does not name the lock', async () => {
  const app = await start([HoldfastModule.forRoot({ client, filter })], controller());
  const address = { host: '127.0.0.1', port: 0 };
  const service = app.connectMicroservice({ transport: Transport.TCP, options: address }, { inheritAppConfig: true });
  await app.startAllMicroservices();
  const { port } = service.unwrap<Server>().address() as AddressInfo;
  const proxy = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  const error: unknown = await lastValueFrom(proxy.send('pay', {})).catch((reason: unknown) => reason);
  proxy.close();
  expect(error).toEqual({ status: 'error', code: 'ERR_LOCK_TIMEOUT', message: MESSAGE, retryAfter: 3 });
});

test('a resolver of GraphQL gets an error whose message does not name the lock', async () => {
  const app = await start([HoldfastModule.forRoot({ client, filter })], controller());
  await app.init();
  const target = new (payingClass())();
  // As @nestjs/graphql calls it. GraphQL takes an error that a resolver returns as the error of its field.
  const resolve = app
    .get(ExternalContextCreator)
    .create(target, target.pay, 'pay', undefined, undefined, undefined, undefined, undefined, 'graphql');
  expect(await resolve()).toMatchObject({ message: MESSAGE, code: 'ERR_LOCK_TIMEOUT', retryAfter: 3 });
});

describe('a message to a gateway with the filter gets the event `exception`, which does not name the lock', () => {
  const exception = {
    status: 'error',
    code: 'ERR_LOCK_TIMEOUT',
    message: 'another request holds the lock of this resource; try again in 1 s',
    retryAfter: 1,
    cause: { pattern: 'pay', data: { id: 7 } },
  };

  async function gateway(Adapter: typeof WsAdapter | typeof IoAdapter): Promise<string> {
    const target = decorate(payingClass(), SubscribeMessage('pay'), UseFilters(LockTimeoutFilter));
    WebSocketGateway()(target);
    const app = await start([HoldfastModule.forRoot({ client, filter })], controller(), target);
    app.useWebSocketAdapter(new Adapter(app));
    return listen(app);
  }

  test('with ws', async () => {
    const socket = new WebSocket(`ws://${await gateway(WsAdapter)}`);
    await once(socket, 'open');
    socket.send(JSON.stringify({ event: 'pay', data: { id: 7 } }));
    const [data] = (await once(socket, 'message')) as [Buffer];
    socket.terminate();
    expect(JSON.parse(data.toString())).toEqual({ event: 'exception', data: exception });
  });

  test('with socket.io', async () => {
    // The protocol of Socket.IO over WebSocket, version 4: "0" opens, "40" joins, and "42" is an event.
    const socket = new WebSocket(`ws://${await gateway(IoAdapter)}/socket.io/?EIO=4&transport=websocket`);
    const received: string[] = [];
    socket.on('message', (data: Buffer) => received.push(data.toString()));
    await until(() => received.some((text) => text.startsWith('0')), 'the connection is open');
    socket.send('40');
    await until(() => received.some((text) => text.startsWith('40')), 'the client has joined');
    socket.send(`42${JSON.stringify(['pay', { id: 7 }])}`);
    await until(() => received.some((text) => text.startsWith('42')), 'an event');
    socket.terminate();
    expect(JSON.parse(received.at(-1)!.slice(2))).toEqual(['exception', exception]);
  });
});
