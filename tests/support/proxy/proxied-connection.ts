import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { DeliveryQueue, type Gate } from './delivery-queue.js';
import type { ConnectionKind, Direction, Fault, SeenCommand, SeenConnection, SeenReply } from './fault.js';
import { Framer, isPush, leadingStrings, replyEnd, requestArgs, requestEnd } from './resp.js';

/** The fate of one command. It has at most one fate, and any number of faults may hold it or its reply. */
export interface Treatment {
  readonly fate: { readonly fault: Fault; readonly reply?: Buffer } | undefined;
  readonly commandGates: readonly Gate[];
  readonly replyGates: readonly Gate[];
  /** Called when they have struck, and again when the server has replied. */
  readonly holders: readonly Fault[];
}

/** The proxy, as its connections see it. */
export interface FaultRules {
  treatCommand(connection: SeenConnection, command: SeenCommand): Treatment;
  /** The fault that drops this message, if any. */
  dropMessage(connection: SeenConnection, channel: string): Fault | undefined;
  delays(connection: SeenConnection, direction: Direction, seen: SeenCommand | SeenReply | undefined): readonly Gate[];
  stalled(connection: SeenConnection, direction: Direction): boolean;
  bytesPerSecond(connection: SeenConnection, direction: Direction): number;
  closed(connection: ProxiedConnection): void;
}

interface Pending {
  readonly command: { -readonly [K in keyof SeenCommand]: SeenCommand[K] };
  readonly treatment: Treatment;
  /** SUBSCRIBE is answered once per channel. */
  confirmations: number;
  /** An answer of our own, given when its turn comes. */
  readonly answer?: Buffer;
}

const MINUS = 0x2d;
const CONFIRMATIONS = /^[ps]?(un)?subscribe$/;
const MESSAGES = /^[ps]?message$/;

export class ProxiedConnection implements SeenConnection {
  kind: ConnectionKind = 'command';
  name: string | undefined;
  readonly #server: Socket;
  readonly #toServer: DeliveryQueue;
  readonly #toClient: DeliveryQueue;
  readonly #requests = new Framer(requestEnd);
  readonly #replies = new Framer(replyEnd);
  readonly #pending: Pending[] = [];
  readonly #channels: Record<string, Set<string>> = {};
  #resp3 = false;
  #clientGone = false;
  #silent = false;
  #cut = false;
  #heldCommands = false;

  constructor(
    readonly id: number,
    private readonly client: Socket,
    target: NetConnectOpts,
    private readonly rules: FaultRules,
    /** Bytes are passed on without being read. */
    private opaque: boolean,
  ) {
    const server = (this.#server = connect({ ...target, allowHalfOpen: true }));
    this.#toServer = this.#queue(server, 'to-server', () => !this.#heldCommands || this.#pending.length === 0);
    this.#toClient = this.#queue(client, 'to-client', () => true);
    for (const socket of [client, server]) socket.setNoDelay(true).on('error', () => undefined);
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk));
    server.on('data', (chunk: Buffer) => this.#fromServer(chunk));
    // The end of a stream queues behind held data, as it follows data that a network still carries.
    client.on('end', () => this.#clientLeft()).on('close', () => this.#clientLeft());
    server.on('end', () => this.#toClient.end()).on('close', () => this.#toClient.end());
    const closed = (): void => {
      if (client.closed && server.closed) rules.closed(this);
    };
    client.on('close', closed);
    server.on('close', closed);
  }

  /** Whether the client still holds its side. */
  get open(): boolean {
    return !this.#clientGone;
  }

  /** Continues with the data that a lifted fault has released. */
  drain(): void {
    this.#toServer.drain();
    this.#toClient.drain();
  }

  /** With `client`, held data for the server is still delivered. Data that was already passed on is not lost. */
  cut(side: 'both' | 'client'): void {
    this.#silent = true;
    this.#toClient.discard();
    this.client.destroySoon();
    if (side === 'client') return;
    this.#cut = true;
    this.#toServer.discard();
    this.#server.destroySoon();
  }

  destroy(): void {
    this.cut('both');
    this.client.destroy();
    this.#server.destroy();
  }

  #queue(sink: Socket, direction: Direction, mayEnd: () => boolean): DeliveryQueue {
    const { rules } = this;
    const stalled = (): boolean => rules.stalled(this, direction);
    return new DeliveryQueue(sink, stalled, () => rules.bytesPerSecond(this, direction), mayEnd);
  }

  #clientLeft(): void {
    if (this.#clientGone) return;
    this.#clientGone = true;
    this.#toServer.end();
  }

  #fromClient(chunk: Buffer): void {
    if (this.#cut) return;
    if (!this.opaque) {
      for (const frame of this.#requests.push(chunk)) this.#request(frame);
      if (!this.#requests.broken) return;
      this.opaque = true;
      chunk = this.#requests.takeRest();
    }
    this.#toServer.push({ bytes: chunk, gates: this.rules.delays(this, 'to-server', undefined) });
  }

  #request(frame: Buffer): void {
    if (this.#cut) return;
    const [word, ...args] = requestArgs(frame);
    if (word === undefined) return this.#toServer.push({ bytes: frame, gates: [] });
    const name = word.toUpperCase();
    this.#learn(name, args);
    const { id, kind } = this;
    const at = performance.now();
    const command = { name, args, connection: id, kind, at, deliveredAt: undefined, answeredAt: undefined };
    const treatment = this.rules.treatCommand(this, command);
    const pending: Pending = { command, treatment, confirmations: this.#confirmationsFor(name, args) };
    const fate = treatment.fate;
    if (fate?.fault.kind === 'cut-before') {
      this.cut('both');
      return fate.fault.apply();
    }
    if (fate?.fault.kind === 'answer' && fate.reply) {
      this.#pending.push({ ...pending, answer: fate.reply });
      return this.#giveOwnAnswers();
    }
    this.#pending.push(pending);
    const delays = this.rules.delays(this, 'to-server', command);
    if (treatment.commandGates.length > 0) this.#heldCommands = true;
    this.#toServer.push({
      bytes: frame,
      gates: [...treatment.commandGates, ...delays],
      onDelivered: () => (pending.command.deliveredAt = performance.now()),
    });
    for (const fault of treatment.holders) if (fault.kind !== 'hold-reply') fault.apply();
  }

  #learn(name: string, args: readonly string[]): void {
    if (/^[PS]?SUBSCRIBE$/.test(name)) this.kind = 'subscriber';
    if (name === 'HELLO') {
      const setName = args.findIndex((arg) => arg.toUpperCase() === 'SETNAME');
      if (setName >= 0) this.name = args[setName + 1];
    }
    if (name === 'CLIENT' && args[0]?.toUpperCase() === 'SETNAME') this.name = args[1];
  }

  /** UNSUBSCRIBE without arguments is answered once per channel there is, and once if there is none. */
  #confirmationsFor(name: string, args: readonly string[]): number {
    const [, family = '', un] = /^([PS]?)(UN)?SUBSCRIBE$/.exec(name) ?? [];
    if (!CONFIRMATIONS.test(name.toLowerCase())) return 1;
    const channels = (this.#channels[family] ??= new Set());
    const named = args.length > 0 ? args : [...channels];
    for (const channel of named) {
      if (un) channels.delete(channel);
      else channels.add(channel);
    }
    return Math.max(1, named.length);
  }

  #fromServer(chunk: Buffer): void {
    if (!this.opaque) {
      for (const frame of this.#replies.push(chunk)) this.#reply(frame);
      if (!this.#replies.broken) return;
      this.opaque = true;
      chunk = this.#replies.takeRest();
    }
    this.#pass(chunk, undefined, []);
  }

  #reply(frame: Buffer): void {
    if (this.#cut) return;
    const [word = '', channel = ''] = leadingStrings(frame, 2);
    const spoken = MESSAGES.test(word) || CONFIRMATIONS.test(word);
    const pushed = isPush(frame) || (spoken && this.kind === 'subscriber' && !this.#resp3);
    const head = this.#pending[0];
    if (head === undefined || (pushed && head.command.name.toLowerCase() !== word)) {
      const drop = pushed && MESSAGES.test(word) ? this.rules.dropMessage(this, channel) : undefined;
      if (drop) drop.apply();
      else this.#pass(frame, undefined, []);
      return;
    }
    head.confirmations = pushed ? head.confirmations - 1 : 0; // an error answers all channels at once
    this.#answered(head, frame);
  }

  #answered(head: Pending, frame: Buffer): void {
    const { command, treatment } = head;
    const last = head.confirmations === 0;
    if (last) {
      this.#pending.shift();
      command.answeredAt = performance.now();
      if (command.name === 'HELLO' && frame[0] !== MINUS) this.#resp3 = command.args[0] === '3';
    }
    const fault = treatment.fate?.fault;
    if (fault?.kind === 'cut-after' || fault?.kind === 'swallow') this.#silent = true;
    else this.#pass(fault?.kind === 'garble' ? (treatment.fate?.reply ?? frame) : frame, command, treatment.replyGates);
    if (!last) return;
    if (fault?.kind === 'cut-after') this.cut('both');
    fault?.apply();
    fault?.noteExecuted();
    for (const holder of treatment.holders) {
      if (holder.kind === 'hold-reply') holder.apply();
      holder.noteExecuted();
    }
    this.#giveOwnAnswers();
    this.#toServer.drain(); // it may have waited for this reply before it ends
  }

  #giveOwnAnswers(): void {
    for (let head = this.#pending[0]; head?.answer !== undefined; head = this.#pending[0]) {
      this.#pending.shift();
      this.#pass(head.answer, head.command, head.treatment.replyGates);
      head.treatment.fate?.fault.apply();
    }
  }

  #pass(bytes: Buffer, command: SeenCommand | undefined, gates: readonly Gate[]): void {
    if (this.#silent) return;
    const delays = this.rules.delays(this, 'to-client', { bytes, command });
    this.#toClient.push({ bytes, gates: [...gates, ...delays] });
  }
}
