import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Gate } from './delivery-queue.js';
import {
  Fault,
  selectsCommand,
  selectsConnection,
  type CommandSelector,
  type ConnectionSelector,
  type Direction,
  type DirectionSelector,
  type FaultKind,
  type MessageSelector,
  type SeenCommand,
  type SeenConnection,
  type SeenReply,
} from './fault.js';
import { freePort } from '../servers/free-port.js';
import { ProxiedConnection, type FaultRules, type Treatment } from './proxied-connection.js';

export type Target = { host: string; port: number } | { path: string };

export interface ProxyOptions {
  /** Do not read the bytes (TLS): faults that select commands or messages never strike. */
  opaque?: boolean;
  /** How many commands `log` keeps. */
  logLimit?: number;
}

/** A delay in ms, or one for each thing seen (absent: bytes of an opaque connection). */
export type Delay = number | ((seen: SeenCommand | SeenReply | undefined, connection: SeenConnection) => number);

const FATES: readonly FaultKind[] = ['cut-before', 'cut-after', 'swallow', 'answer', 'garble'];

/**
 * A TCP proxy between client and server that fails on request.
 *
 * Faults are looked at in the order they were set. Of those that decide a command's fate (cutBefore, cutAfter, swallow,
 * answer, garble) the first that matches takes the command and the others do not count it, so two in a row strike two
 * commands in a row. Holds, delays and observers apply on top.
 */
export class FaultProxy {
  readonly #server: Server;
  readonly #connections = new Set<ProxiedConnection>();
  readonly #hung = new Set<Socket>();
  #commandFaults: { fault: Fault; selector: CommandSelector; ms: number; reply?: Buffer }[] = [];
  readonly #messageFaults: { fault: Fault; selector: MessageSelector }[] = [];
  readonly #stalls = new Map<Fault, DirectionSelector>();
  readonly #delays = new Map<Fault, { selector: DirectionSelector; delay: Delay }>();
  readonly #throttles = new Map<Fault, { selector: DirectionSelector; bytesPerSecond: number }>();
  readonly #refusals: { fault: Fault; how: 'reset' | 'hang' }[] = [];
  readonly #commandCounts = new Map<string, number>();
  readonly #faultCounts = new Map<FaultKind, number>();
  readonly #log: SeenCommand[] = [];
  readonly #logLimit: number;
  readonly #rules: FaultRules;
  #accepted = 0;
  #closing: Promise<void> | undefined;

  private constructor(
    private target: Target,
    options: ProxyOptions,
  ) {
    this.#logLimit = options.logLimit ?? 20_000;
    this.#rules = {
      treatCommand: (connection, command) => this.#treatCommand(connection, command),
      dropMessage: (connection, channel) => this.#dropMessage(connection, channel),
      delays: (connection, direction, seen) => this.#delaysFor(connection, direction, seen),
      stalled: (connection, direction) => selected(this.#stalls, connection, direction).length > 0,
      bytesPerSecond: (connection, direction) =>
        Math.min(
          Infinity,
          ...selected(this.#throttles, connection, direction).map(([, { bytesPerSecond }]) => bytesPerSecond),
        ),
      closed: (connection) => this.#connections.delete(connection),
    };
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, options.opaque ?? false));
  }

  /** Listens on a free loopback port. */
  static async start(target: Target, options: ProxyOptions = {}): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, options);
    proxy.#server.listen(await freePort(), proxy.host);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  readonly host = '127.0.0.1';

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  get stats(): {
    accepted: number;
    open: number;
    /** By upper-case name, as read from the clients, whether or not they were passed on. */
    commands: ReadonlyMap<string, number>;
    faults: ReadonlyMap<FaultKind, number>;
  } {
    const open = [...this.#connections].filter((connection) => connection.open).length;
    return { accepted: this.#accepted, open, commands: this.#commandCounts, faults: this.#faultCounts };
  }

  /** The latest commands, oldest first. */
  get log(): readonly SeenCommand[] {
    return this.#log;
  }

  /** The connections whose client is still connected. */
  connections(selector: ConnectionSelector = {}): SeenConnection[] {
    return [...this.#connections].filter((each) => each.open && selectsConnection(selector, each));
  }

  /** New connections go to another server. */
  retarget(target: Target): void {
    this.target = target;
  }

  /**
   * Cuts now. With `side: 'client'` only the client is disconnected, and held data for the server is still delivered.
   * Returns the number of cut connections.
   */
  cut(selector: ConnectionSelector & { side?: 'both' | 'client' } = {}): number {
    const cut = [...this.#connections].filter((each) => each.open && selectsConnection(selector, each));
    for (const connection of cut) {
      connection.cut(selector.side ?? 'both');
      this.#count('cut');
    }
    return cut.length;
  }

  /** Cuts instead of passing the command on: the server never sees it. */
  cutBefore(selector: CommandSelector): Fault {
    return this.#addCommandFault('cut-before', selector);
  }

  /** Cuts when the server has answered the command; the reply is lost. */
  cutAfter(selector: CommandSelector): Fault {
    return this.#addCommandFault('cut-after', selector);
  }

  /**
   * Loses the reply and everything the server sends on that connection from then on, which stays open. (A reply missing
   * from a stream that goes on would give each command its successor's reply; no network does that.)
   */
  swallow(selector: CommandSelector): Fault {
    return this.#addCommandFault('swallow', selector);
  }

  /**
   * Answers in the server's place, which never sees the command: `answer({ command: 'EVALSHA' }, '-LOADING ...\r\n')`.
   */
  answer(selector: CommandSelector, reply: string): Fault {
    return this.#addCommandFault('answer', selector, Infinity, reply);
  }

  /** Passes the command on and replaces its reply by bytes that are no reply. */
  garble(selector: CommandSelector, bytes = '\0garbage\r\n'): Fault {
    return this.#addCommandFault('garble', selector, Infinity, bytes);
  }

  /**
   * Holds the command, and later data of the client, on the way to the server: for `ms`, or until lifted. The data is
   * delivered even if the client has disconnected.
   */
  holdCommand(selector: CommandSelector, ms = Infinity): Fault {
    return this.#addCommandFault('hold-command', selector, ms);
  }

  /** Holds the reply to the command, and later data of the server: for `ms`, or until lifted. */
  holdReply(selector: CommandSelector, ms = Infinity): Fault {
    return this.#addCommandFault('hold-reply', selector, ms);
  }

  /** Does nothing to the command, but reports it: `await proxy.observe({ command: 'SUBSCRIBE' }).applied`. */
  observe(selector: CommandSelector): Fault {
    return this.#addCommandFault('observe', selector);
  }

  /** Loses pub/sub messages, and nothing else. */
  dropMessages(selector: MessageSelector = {}): Fault {
    const fault = this.#fault('drop-message', selector);
    this.#messageFaults.push({ fault, selector });
    return fault;
  }

  /** Passes nothing on until lifted, and then everything. */
  stall(selector: DirectionSelector = {}): Fault {
    const fault = this.#fault('stall', { times: Infinity }, () => this.#stalls.delete(fault));
    this.#stalls.set(fault, selector);
    return fault;
  }

  /** Passes everything on later, in its order. */
  delay(delay: Delay, selector: DirectionSelector = {}): Fault {
    const fault = this.#fault('delay', { times: Infinity }, () => this.#delays.delete(fault));
    this.#delays.set(fault, { selector, delay });
    return fault;
  }

  throttle(bytesPerSecond: number, selector: DirectionSelector = {}): Fault {
    const fault = this.#fault('throttle', { times: Infinity }, () => this.#throttles.delete(fault));
    this.#throttles.set(fault, { selector, bytesPerSecond });
    return fault;
  }

  /** New connections are reset, or accepted and never answered (those stay hung when this is lifted). */
  refuse(how: 'reset' | 'hang', options: { times?: number } = {}): Fault {
    const fault = this.#fault('refuse', { times: options.times ?? Infinity });
    this.#refusals.push({ fault, how });
    return fault;
  }

  /** Lifts every fault. */
  lift(): void {
    const faults = [this.#commandFaults, this.#messageFaults, this.#refusals].flat().map(({ fault }) => fault);
    for (const fault of [...faults, ...this.#stalls.keys(), ...this.#delays.keys(), ...this.#throttles.keys()]) {
      fault.lift();
    }
  }

  /** Ends at once, with everything that is still held. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const connection of this.#connections) connection.destroy();
    for (const socket of this.#hung) socket.destroy();
    for (const { fault } of [this.#commandFaults, this.#messageFaults, this.#refusals].flat()) fault.abandon();
    for (const faults of [this.#stalls, this.#delays, this.#throttles])
      for (const fault of faults.keys()) fault.abandon();
    await closed;
  }

  #accept(socket: Socket, opaque: boolean): void {
    this.#accepted += 1;
    const refusal = this.#refusals.find(({ fault }) => fault.active && fault.strikes());
    if (refusal?.how === 'reset') {
      socket.on('error', () => undefined).resetAndDestroy();
    } else if (refusal?.how === 'hang') {
      this.#hung.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#hung.delete(socket));
      socket.resume();
    } else {
      this.#connections.add(new ProxiedConnection(this.#accepted, socket, this.target, this.#rules, opaque));
    }
    refusal?.fault.apply();
  }

  #fault(kind: FaultKind, counted: { nth?: number; times?: number }, lifted = (): unknown => undefined): Fault {
    return new Fault(
      kind,
      counted,
      () => this.#count(kind),
      () => {
        lifted();
        for (const connection of this.#connections) connection.drain();
      },
    );
  }

  #addCommandFault(kind: FaultKind, selector: CommandSelector, ms = Infinity, reply?: string): Fault {
    const fault = this.#fault(kind, selector);
    // A hold that has had its matches may still have to be lifted.
    this.#commandFaults = this.#commandFaults.filter(
      (each) => each.fault.active || (each.fault.holds && !each.fault.lifted),
    );
    this.#commandFaults.push({ fault, selector, ms, ...(reply !== undefined && { reply: Buffer.from(reply) }) });
    return fault;
  }

  #treatCommand(connection: SeenConnection, command: SeenCommand): Treatment {
    this.#commandCounts.set(command.name, (this.#commandCounts.get(command.name) ?? 0) + 1);
    this.#log.push(command);
    if (this.#log.length > this.#logLimit) this.#log.splice(0, this.#log.length - this.#logLimit);
    let fate: Treatment['fate'];
    const commandGates: Gate[] = [];
    const replyGates: Gate[] = [];
    const holders: Fault[] = [];
    for (const { fault, selector, ms, reply } of this.#commandFaults) {
      if (!fault.active || (fate && FATES.includes(fault.kind))) continue;
      if (!selectsConnection(selector, connection) || !selectsCommand(selector, command) || !fault.strikes()) continue;
      if (FATES.includes(fault.kind)) fate = { fault, ...(reply && { reply }) };
      else holders.push(fault);
      if (fault.kind === 'hold-command') commandGates.push(fault.gate(ms));
      if (fault.kind === 'hold-reply') replyGates.push(fault.gate(ms));
    }
    return { fate, commandGates, replyGates, holders };
  }

  #dropMessage(connection: SeenConnection, channel: string): Fault | undefined {
    return this.#messageFaults.find(
      ({ fault, selector }) =>
        fault.active &&
        selectsConnection(selector, connection) &&
        (selector.channel === undefined || selector.channel === channel) &&
        fault.strikes(),
    )?.fault;
  }

  #delaysFor(connection: SeenConnection, direction: Direction, seen: SeenCommand | SeenReply | undefined): Gate[] {
    for (const [fault] of selected(this.#stalls, connection, direction)) fault.apply();
    for (const [fault] of selected(this.#throttles, connection, direction)) fault.apply();
    return selected(this.#delays, connection, direction).map(([fault, { delay }]) => {
      fault.apply();
      return fault.gate(typeof delay === 'number' ? delay : delay(seen, connection));
    });
  }

  #count(kind: FaultKind): void {
    this.#faultCounts.set(kind, (this.#faultCounts.get(kind) ?? 0) + 1);
  }
}

function selected<T extends DirectionSelector | { selector: DirectionSelector }>(
  faults: ReadonlyMap<Fault, T>,
  connection: SeenConnection,
  direction: Direction,
): [Fault, T][] {
  return [...faults].filter(([, entry]) => {
    const selector: DirectionSelector = 'selector' in entry ? entry.selector : entry;
    return (selector.direction ?? direction) === direction && selectsConnection(selector, connection);
  });
}
