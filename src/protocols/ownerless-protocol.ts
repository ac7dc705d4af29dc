import { groupOf, nameOf, type Named } from '../lock-name.js';
import type { LockKind } from '../events.js';
import { requestsKey } from '../redis/keys.js';
import type { ScriptRequest } from '../redis/requests/script-request.js';
import * as reads from '../redis/scripts/reads.js';
import * as requestScripts from '../redis/scripts/request.js';
import type { ProtocolPort } from './protocol-port.js';

/** A lane of this client while one request uses it. Redis keeps the sequence and the reply of its last request. */
export interface Lane {
  /** The hash in Redis that stores the lanes of this client for one object. */
  readonly key: string;
  /** The field of the hash. */
  readonly number: number;
  /**
   * Sequence of the request. The sequences of a client only grow, so a request in a reused lane is newer than the
   * stored one.
   */
  readonly sequence: number;
}

/** The requests that semaphores and latches share: a number in Redis, without an owner. */
export abstract class OwnerlessProtocol {
  /** The kind, in events, statistics and diagnostics channels. */
  abstract readonly kind: LockKind;
  /** Several callers can have permits, or pass a latch, at the same time. */
  readonly concurrent = true;
  readonly name: string;
  readonly group: string | undefined;
  readonly key: string;
  /** Key of the lanes of this client. A change needs a lane to take effect at most once. */
  readonly requests: string;
  readonly channel: string;

  constructor(
    protected readonly port: ProtocolPort,
    named: Named,
    channelOf: (key: string) => string,
  ) {
    this.name = nameOf(named);
    this.group = groupOf(named);
    this.key = port.keyPrefix + this.name;
    this.requests = requestsKey(this.key, port.clientId);
    this.channel = channelOf(this.key);
  }

  exists(): Promise<boolean> {
    return this.port.executor.ask(reads.exists, [this.key], []);
  }

  /** Free permits, or the count of a latch. `undefined` if the key does not exist. */
  readCount(): Promise<number | undefined> {
    return this.port.executor.ask(reads.getCount, [this.key], []);
  }

  /** Keeps a change whose outcome is unknown from running later. */
  cancelChange({ number, sequence }: Lane): ScriptRequest<boolean> {
    return this.port.executor.run(requestScripts.cancel, [this.requests], [number, sequence]);
  }

  /** The last arguments of a change: how it wakes waiters, and its lane. */
  protected lastArgs({ number, sequence }: Lane): [publish: string, channel: string, lane: number, sequence: number] {
    return [this.port.publish, this.channel, number, sequence];
  }
}
