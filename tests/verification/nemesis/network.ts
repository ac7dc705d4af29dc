import type { Fault } from '../../support/proxy/fault.js';
import { natMapOf } from '../../support/proxy/nat-map.js';
import { FaultProxy } from '../../support/proxy/proxy.js';
import type { RedisServer } from '../../support/servers/servers.js';

/** A fault that can be counted and lifted. */
export interface SetFault {
  readonly count: number;
  lift(): void;
}

type Faults = Pick<
  FaultProxy,
  | 'cutBefore'
  | 'cutAfter'
  | 'swallow'
  | 'garble'
  | 'answer'
  | 'holdCommand'
  | 'holdReply'
  | 'stall'
  | 'delay'
  | 'throttle'
  | 'refuse'
>;

/** Enough for the pending requests when all flows have stopped. */
const LOGGED = 50;

/** The ways of one process to all servers: a proxy in front of each. A fault strikes whichever of them it meets. */
export class Network {
  private constructor(readonly proxies: readonly FaultProxy[]) {}

  static async open(servers: readonly RedisServer[]): Promise<Network> {
    return new Network(
      await Promise.all(servers.map(({ address }) => FaultProxy.start(address, { logLimit: LOGGED }))),
    );
  }

  /** Maps the announced address of a server to its address for this process. */
  natMap(servers: readonly RedisServer[]): Record<string, { host: string; port: number }> {
    return natMapOf(servers, this.proxies);
  }

  set<K extends keyof Faults>(kind: K, ...args: Parameters<Faults[K]>): SetFault {
    const faults = this.proxies.map((proxy) => (proxy[kind] as (...given: Parameters<Faults[K]>) => Fault)(...args));
    return {
      get count() {
        return faults.reduce((sum, { count }) => sum + count, 0);
      },
      lift: () => faults.forEach((fault) => fault.lift()),
    };
  }

  cut(...args: Parameters<FaultProxy['cut']>): number {
    return this.proxies.reduce((sum, proxy) => sum + proxy.cut(...args), 0);
  }

  /** One of them, and the others stay as they are. */
  pick(choice: number): FaultProxy {
    return this.proxies[Math.floor(choice * this.proxies.length)] as FaultProxy;
  }

  lift(): void {
    for (const proxy of this.proxies) proxy.lift();
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}
