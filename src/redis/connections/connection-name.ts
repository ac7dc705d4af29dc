import { hostname } from 'node:os';

const MARK = 'holdfast';

/** The process that opened a connection, as the name of the connection tells. */
export interface NamedClient {
  readonly clientId: string;
  /** The option `clientName` of the client; the empty string if it has none. */
  readonly clientName: string;
  readonly host: string;
  readonly pid: number;
}

/**
 * The name of every connection of a client: `holdfast:<client id>:<client name>:<host>:<process id>`. Redis allows only
 * printable ASCII without spaces in it, so the client name and the host are percent-encoded.
 */
export function connectionNameOf(clientId: string, clientName: string): string {
  return [MARK, clientId, encodeURIComponent(clientName), encodeURIComponent(hostname()), process.pid].join(':');
}

/** Reads the name of a connection; `undefined` if no Holdfast client gave it. Any client may set any name. */
export function parseConnectionName(name: string): NamedClient | undefined {
  const [mark, clientId, clientName, host, pid, ...more] = name.split(':');
  if (mark !== MARK || pid === undefined || !/^\d+$/.test(pid) || more.length > 0) return undefined;
  try {
    return {
      clientId: clientId as string,
      clientName: decodeURIComponent(clientName as string),
      host: decodeURIComponent(host as string),
      pid: Number(pid),
    };
  } catch {
    return undefined;
  }
}
