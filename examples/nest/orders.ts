/* The application of nest-orders.ts. The decorators of Nest need the settings of the tsconfig.json in this folder. */
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Controller, Inject, Injectable, Logger, Module, Param, Post, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Lock, LockClient } from 'holdfast';
import { getLockClientToken, HoldfastModule, InjectLock, Locked, lockedWith } from 'holdfast/nest';

/** Takes its locks from the client with the name `audit`. */
const LockedInAudit = lockedWith('audit');

@Injectable()
class Ledger {
  readonly lines: string[] = [];

  constructor(@InjectLock('example:nest:report') private readonly lock: Lock) {}

  @LockedInAudit({ key: 'example:nest:ledger', waitTime: 1_000 })
  async append(line: string): Promise<void> {
    this.lines.push(line);
  }

  /** Work that no request waits for. `begun` is called when it has the lock. */
  async report(begun: () => void): Promise<void> {
    await this.lock.withLock(async () => {
      begun();
      await pause(300);
      console.log(`the report has ${this.lines.length} lines`);
    });
  }
}

@Controller('orders')
class OrdersController {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  /** The filter of the module answers a request that finds the order busy. */
  @Post(':id/pay')
  @Locked({ key: (id: string) => `example:nest:order:${id}` })
  async pay(@Param('id') id: string): Promise<string> {
    await pause(200);
    await this.ledger.append(`paid ${id}`);
    return `paid ${id}`;
  }
}

interface Started {
  readonly app: INestApplication;
  readonly address: string;
  report(begun: () => void): Promise<void>;
}

/** Starts the application on a free port. */
export async function start(url: string): Promise<Started> {
  @Module({
    imports: [
      // At the shutdown each client waits for the sections that have begun.
      HoldfastModule.forRoot({ isGlobal: true, filter: { retryAfter: 2 }, url, close: { drain: 5_000 } }),
      HoldfastModule.forRoot({ isGlobal: true, name: 'audit', url, close: { drain: 5_000 } }),
    ],
    controllers: [OrdersController],
    providers: [Ledger],
  })
  class AppModule {}

  Logger.overrideLogger(false);
  const app = await NestFactory.create(AppModule);
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as { address(): AddressInfo }).address();
  // The token finds a client, here and in tests that replace it.
  const isOwnClient = app.get<LockClient>(getLockClientToken()) !== app.get<LockClient>(getLockClientToken('audit'));
  console.log(`two clients: ${isOwnClient}`);
  return { app, address: `http://127.0.0.1:${port}`, report: (begun) => app.get(Ledger).report(begun) };
}
