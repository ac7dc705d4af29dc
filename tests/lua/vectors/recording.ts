import { lockChannel } from '../../../src/redis/keys.js';
import { readProjectFile } from '../../support/project/project-files.js';
import type { KeyState } from '../../support/redis-state.js';

/** The steps of Redisson and of its server. Times are ms since the scenario began. */
export interface Scenario {
  readonly name: string;
  readonly note: string;
  readonly settings: {
    readonly clients: readonly string[];
    readonly mode?: 'single' | 'cluster' | 'replica';
    readonly lockWatchdogTimeout?: number;
    readonly fairLockWaitTimeout?: number;
    readonly toleranceMs: number;
  };
  readonly steps: readonly Step[];
}

export interface Step {
  readonly i: number;
  readonly at: number;
  readonly actor: { readonly client: string; readonly thread: string } | null;
  readonly call: {
    readonly object: string;
    readonly method: string;
    readonly args: readonly (string | number)[];
  };
  readonly result?: unknown;
  readonly error?: JavaError;
  readonly completed?: readonly { readonly step: number; readonly result?: unknown; readonly error?: JavaError }[];
  readonly scripts: readonly {
    readonly n: number;
    readonly at: number;
    readonly client: string;
    readonly keys: readonly string[];
    readonly args: readonly string[];
    readonly reply: unknown;
  }[];
  readonly commands: readonly {
    readonly n: number;
    readonly at: number;
    readonly client: string;
    readonly cmd: readonly string[];
    readonly reply: unknown;
  }[];
  readonly published: readonly { readonly channel: string; readonly payload: string }[];
  readonly stateAt: number;
  readonly state: Readonly<Record<string, KeyState>>;
}

export interface JavaError {
  readonly class: string;
  readonly message: string | null;
  readonly cause?: JavaError;
}

export const PENDING = '<pending>';

/** @param kind  of lock; the file has its name */
export function recordedScenarios(kind: string): Scenario[] {
  // Several servers were recorded as one with prefixed keys; here one has to do, since no name is on two of them.
  return JSON.parse(readProjectFile(`tests/lua/vectors/${kind}.json`).replaceAll(/server\d\//g, '')) as Scenario[];
}

/** Names as recorded, but under a prefix: the scenarios are replayed side by side, and all lock `lk`. */
export class Names {
  constructor(readonly prefix: string) {}

  ours(recorded: string): string {
    if (/^redisson_(?!lock__channel:)/.test(recorded)) return recorded.replace('{', `{${this.prefix}`);
    if (/^\{.*\}:/.test(recorded)) return recorded.replace('{', `{${this.prefix}`);
    const channel = /^redisson_lock__channel:(.*)$/.exec(recorded)?.[1];
    if (channel === undefined) return this.prefix + recorded;
    return lockChannel(this.prefix + (/^\{([^{}]*)\}$/.exec(channel)?.[1] ?? channel));
  }

  recorded(ours: string): string {
    return ours.replace(this.prefix, '');
  }
}

/** Keeps to the recorded pace, and knows how far behind it was at worst. */
export class Pace {
  readonly #began = performance.now();
  #lateMs = 0;

  now(): number {
    return performance.now() - this.#began;
  }

  /** Epoch ms at the beginning. */
  get epoch(): number {
    return performance.timeOrigin + this.#began;
  }

  get lateMs(): number {
    return this.#lateMs;
  }

  async until(at: number): Promise<void> {
    const ms = at - this.now();
    if (ms > 0) await new Promise((resume) => setTimeout(resume, ms));
    this.did(at);
  }

  /** The step of `at` has ended by now, or by `doneAt`. */
  did(at: number, doneAt = this.now()): void {
    this.#lateMs = Math.max(this.#lateMs, doneAt - at);
  }
}
