import { parseConnectionName } from '../redis/connections/connection-name.js';

/** The process of an owner, as `CLIENT LIST` reports it. Any client can give its connections any name. */
export interface OwnerProcess {
  /** The option `clientName` of the client; the empty string if it has none. */
  readonly clientName: string;
  /** The host name of the machine, as the process knows it. */
  readonly host: string;
  /** The process id. */
  readonly pid: number;
  /** The address and port of a connection of the client, as Redis sees it. */
  readonly address: string;
}

/** The Holdfast clients in a reply to `CLIENT LIST`, by client id. */
export function clientsIn(list: string): ReadonlyMap<string, OwnerProcess> {
  const clients = new Map<string, OwnerProcess>();
  for (const line of list.split('\n')) {
    const named = parseConnectionName(/(?:^| )name=(\S*)/.exec(line)?.[1] ?? '');
    if (named === undefined || clients.has(named.clientId)) continue;
    const { clientId, clientName, host, pid } = named;
    clients.set(clientId, { clientName, host, pid, address: /(?:^| )addr=(\S*)/.exec(line)?.[1] ?? '' });
  }
  return clients;
}

/** The client id in an owner id: `<client id>:<number>`. */
export const clientIdOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));
