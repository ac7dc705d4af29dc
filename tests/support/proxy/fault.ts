import type { Gate } from './delivery-queue.js';

export type FaultKind =
  | 'cut'
  | 'cut-before'
  | 'cut-after'
  | 'swallow'
  | 'answer'
  | 'garble'
  | 'hold-command'
  | 'hold-reply'
  | 'drop-message'
  | 'observe'
  | 'stall'
  | 'delay'
  | 'throttle'
  | 'refuse';

/** A connection is a subscriber's from its first (S/P)SUBSCRIBE on; until then it counts as a command connection. */
export type ConnectionKind = 'command' | 'subscriber';
export type Direction = 'to-server' | 'to-client';

/** The properties of a proxied connection that a test can read. */
export interface SeenConnection {
  /** 1 for the first connection the proxy accepted. */
  readonly id: number;
  readonly kind: ConnectionKind;
  /** As given with CLIENT SETNAME or HELLO ... SETNAME. */
  readonly name: string | undefined;
}

/** A request as the proxy read it. */
export interface SeenCommand {
  /** Upper case. */
  readonly name: string;
  /** Without the name. */
  readonly args: readonly string[];
  readonly connection: number;
  readonly kind: ConnectionKind;
  readonly at: number;
  /** When its bytes were written to the server; absent while they are held, for good if it was cut off. */
  readonly deliveredAt: number | undefined;
  /** When the server's reply had come: it has been executed or refused. */
  readonly answeredAt: number | undefined;
}

/** The data of the server. */
export interface SeenReply {
  readonly bytes: Buffer;
  /** The request it answers; absent for messages and other pushes. */
  readonly command: SeenCommand | undefined;
}

export interface ConnectionSelector {
  /** Ids, or a predicate; absent: all of them, future ones too. */
  connection?: number | readonly number[] | ((connection: SeenConnection) => boolean);
  kind?: ConnectionKind;
}

interface Counted {
  /** The first match that counts; 1 by default. */
  nth?: number;
  /** How many matches in a row from then on; 1 by default, Infinity until lifted. */
  times?: number;
}

export interface CommandSelector extends ConnectionSelector, Counted {
  /** Any case. */
  command?: string | readonly string[];
  /** The first argument of EVALSHA. */
  sha?: string;
  /** Some argument contains this. */
  contains?: string;
  where?: (command: SeenCommand) => boolean;
}

export interface MessageSelector extends ConnectionSelector, Counted {
  channel?: string;
}

export interface DirectionSelector extends ConnectionSelector {
  /** Absent: both. */
  direction?: Direction;
}

/** A fault that is set. It ends after its `times`, or when it is lifted. */
export class Fault {
  #applications = 0;
  #lifted = false;
  #waiters: { times: number; resolve: () => void; reject: (error: Error) => void }[] = [];
  #matches = 0;
  readonly #executed: PromiseWithResolve;
  readonly #applied: Promise<void>;
  readonly #nth: number;
  readonly #times: number;

  constructor(
    readonly kind: FaultKind,
    counted: Counted,
    private readonly onApplied: (fault: Fault) => void,
    private readonly onLifted: (fault: Fault) => void,
  ) {
    this.#nth = counted.nth ?? 1;
    this.#times = counted.times ?? 1;
    this.#applied = this.appliedTimes(1);
    this.#executed = promiseWithResolve();
  }

  /** Resolves when it has struck for the first time. */
  get applied(): Promise<void> {
    return this.#applied;
  }

  /** Resolves when the server has answered a command that this fault held, cut off after or swallowed the reply of. */
  get executed(): Promise<void> {
    return this.#executed.promise;
  }

  /** How often it has struck. */
  get count(): number {
    return this.#applications;
  }

  /** Whether it can strike again. */
  get active(): boolean {
    return !this.#lifted && this.#matches < this.#nth - 1 + this.#times;
  }

  get lifted(): boolean {
    return this.#lifted;
  }

  get holds(): boolean {
    return this.kind === 'hold-command' || this.kind === 'hold-reply';
  }

  /** For the proxy: holds something back for `ms` from now, or until this fault is lifted. */
  gate(ms: number): Gate {
    const due = performance.now() + ms;
    const opensAt = (): number => (this.#lifted ? 0 : due);
    return {
      get opensAt() {
        return opensAt();
      },
    };
  }

  appliedTimes(times: number): Promise<void> {
    if (this.#applications >= times) return Promise.resolve();
    const promise = new Promise<void>((resolve, reject) => this.#waiters.push({ times, resolve, reject }));
    promise.catch(() => undefined); // a test need not wait for it
    return promise;
  }

  /** Ends the fault: stalled and held data continues in order. Cut or silenced connections stay so. */
  lift(): void {
    if (this.#lifted) return;
    this.#lifted = true;
    this.onLifted(this);
  }

  /** For the proxy: counts a match and says whether the fault strikes here. */
  strikes(): boolean {
    this.#matches += 1;
    return this.#matches >= this.#nth && this.#matches < this.#nth + this.#times;
  }

  /** For the proxy. */
  apply(): void {
    this.#applications += 1;
    this.onApplied(this);
    this.#waiters = this.#waiters.filter((waiter) => {
      if (waiter.times > this.#applications) return true;
      waiter.resolve();
      return false;
    });
  }

  /** For the proxy. */
  noteExecuted(): void {
    this.#executed.resolve();
  }

  /** For the proxy: rejects waits for a fault that can no longer strike. */
  abandon(): void {
    const error = new Error(`the proxy was closed before the fault "${this.kind}" had struck so often`);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }
}

export function selectsConnection(selector: ConnectionSelector, connection: SeenConnection): boolean {
  if (selector.kind !== undefined && selector.kind !== connection.kind) return false;
  const wanted = selector.connection;
  if (wanted === undefined) return true;
  if (typeof wanted === 'function') return wanted(connection);
  return typeof wanted === 'number' ? wanted === connection.id : wanted.includes(connection.id);
}

export function selectsCommand(selector: CommandSelector, command: SeenCommand): boolean {
  if (selector.command !== undefined) {
    const names = typeof selector.command === 'string' ? [selector.command] : selector.command;
    if (!names.some((name) => name.toUpperCase() === command.name)) return false;
  }
  const { sha, contains, where } = selector;
  if (sha !== undefined && !(command.name === 'EVALSHA' && command.args[0] === sha)) return false;
  if (contains !== undefined && !command.args.some((arg) => arg.includes(contains))) return false;
  return where === undefined || where(command);
}

interface PromiseWithResolve {
  promise: Promise<void>;
  resolve: () => void;
}

function promiseWithResolve(): PromiseWithResolve {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
