import { refuseUnknown, type ResolvedOptions } from '../options.js';
import { ClientClosedError, InvalidArgumentError } from '../errors.js';
import { nameOf, type Named } from '../lock-name.js';
import type { Reports } from '../diagnostics/reports.js';
import type { ProtocolPort } from '../protocols/protocol-port.js';
import type { Topology } from '../redis/topologies/topology.js';
import type { Lanes } from '../synchronizers/lanes.js';
import type { WaitLines } from '../waiting/wait-lines.js';
import { describeName, inspectName, type Inspecting, type InspectOptions, type ListEntry } from './describe.js';
import type { LocalHandOvers } from '../waiting/hand-overs/local-hand-over.js';
import { checkForceOptions, forceUnlock, type ForceUnlockOptions } from './force-unlock.js';
import type { Inspection } from './inspection.js';
import { list, type ListOptions } from './list.js';
import { Servers } from './servers.js';

/** The services of the client that an inspector uses. */
interface InspectorServices {
  readonly client: { readonly closed: boolean };
  readonly options: Pick<ResolvedOptions, 'fairLockWaitTimeout'>;
  readonly port: ProtocolPort;
  readonly reports: Reports;
  readonly topology: Topology;
  readonly lines: WaitLines;
  readonly objects: { readonly lanes: Lanes };
  readonly locks: { readonly localHandOvers: LocalHandOvers };
}

/** Shows and frees the locks and synchronizers of every program that uses this Redis, with any client. */
export class Inspector {
  readonly #inspecting: Inspecting;

  constructor(private readonly services: InspectorServices) {
    const { client, lines, port, topology } = services;
    const { clientId, executor, keyPrefix } = port;
    this.#inspecting = {
      client,
      clientId,
      keyPrefix,
      executor,
      servers: new Servers(executor, topology),
      idleChannels: () => lines.idleChannels(),
    };
  }

  async inspect(name: string, options: InspectOptions = {}): Promise<Inspection | ListEntry> {
    this.#checkOpen();
    if (typeof options !== 'object' || (options as unknown) === null) {
      throw new InvalidArgumentError('options', 'an object', options);
    }
    refuseUnknown('options', options, ['processes']);
    return options.processes === true ? describeName(this.#inspecting, name) : inspectName(this.#inspecting, name);
  }

  list(options?: ListOptions): AsyncGenerator<ListEntry, void, undefined> {
    return list(this.#inspecting, options);
  }

  async forceUnlock(name: Named, options: ForceUnlockOptions): Promise<boolean> {
    this.#checkOpen();
    const { lines, locks, objects, options: clientOptions, port, reports } = this.services;
    const forcing = { options: clientOptions, port, reports, lanes: objects.lanes, lines };
    const owner = checkForceOptions(options);
    return locks.localHandOvers.whileForcing(port.keyPrefix + nameOf(name), () => forceUnlock(forcing, name, owner));
  }

  #checkOpen(): void {
    if (this.services.client.closed) throw new ClientClosedError();
  }
}
