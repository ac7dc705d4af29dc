import type { Named } from '../lock-name.js';
import { latchChannel, latchOpenedKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as scripts from '../redis/scripts/latch.js';
import type { AcquireReply } from '../redis/scripts/replies.js';
import { OwnerlessProtocol, type Lane } from './ownerless-protocol.js';
import type { ProtocolPort } from './protocol-port.js';

/** The requests of Redisson's RCountDownLatch: a count, and a channel. A key of its own says when it last opened. */
export class LatchProtocol extends OwnerlessProtocol {
  readonly kind = 'latch';
  readonly #opened: string;

  constructor(port: ProtocolPort, named: Named) {
    super(port, named, latchChannel);
    this.#opened = latchOpenedKey(this.key);
  }

  look(): ScriptRequest<AcquireReply> {
    return this.port.executor.run(scripts.look, [this.key, this.#opened], []);
  }

  countDown(lane: Lane): ScriptRequest<number> {
    return this.port.executor.run(scripts.countDown, [this.key, this.requests, this.#opened], this.lastArgs(lane));
  }

  trySetCount(count: number, lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.trySet, [this.key, this.requests], [count, ...this.lastArgs(lane)]);
  }

  delete(lane: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(scripts.remove, [this.key, this.requests, this.#opened], this.lastArgs(lane));
  }
}
