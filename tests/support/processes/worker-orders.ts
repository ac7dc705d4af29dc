import type { ClientOptions, CloseOptions, LockClient, LockEvents } from 'holdfast';
import type { RedisOptions } from 'ioredis';
import type { ServerAddress } from '../servers/servers.js';
import type { HistoryRecorder } from '../history/history-recorder.mjs';

/** A lock by its name, or whatever else the client makes. */
export type LockSpec =
  | string
  | {
      factory?: string;
      name?: string;
      half?: 'readLock' | 'writeLock';
      /** Of a group multi-lock. */
      values?: string[];
      /** Of a multi-lock. */
      members?: LockSpec[];
      /** A LockContext of the worker, by a name of the test's own. */
      context?: string;
    };

/** The options of createClient that can be sent to another process. */
export type WorkerClientOptions = ClientOptions & {
  url?: string;
  /** The client is given a connection of ioredis with these options. */
  redisOptions?: Omit<RedisOptions, 'replyMapping'>;
  /** The client is given a cluster of ioredis that begins at these nodes. */
  cluster?: { nodes: ServerAddress[]; natMap: Record<string, ServerAddress> };
};

/** As `AcquireOptions`; signal and context go by a name (`worker.abort(name)` fires the signal). */
export interface WorkerAcquireOptions {
  waitTime?: number;
  leaseTime?: number;
  renew?: boolean;
  maxHoldTime?: number;
  signal?: string;
  context?: string;
}

export interface HoldInfo {
  /** The name for `release` and `extend`. */
  readonly hold: string;
  readonly lockName: string;
  readonly owner: string;
  readonly validFor: number;
  readonly lost: boolean;
}

export interface Load {
  client: string;
  locks: readonly LockSpec[];
  /** The shared counter's. */
  port: number;
  flows: number;
  /** Of each flow; Infinity until `stopContending`. */
  rounds: number;
  form: 'lock' | 'tryLock' | 'withLock';
  waitTime?: number;
  leaseTime?: number;
  workMs?: number;
  /** Each section re-enters the lock. */
  nested?: boolean;
}

export interface LoadResult {
  sections: number;
  busy: number;
  /** By error code. */
  failures: Record<string, number>;
}

export type Step =
  | { op: 'call'; lock: LockSpec; method: string; args: unknown[] }
  | { op: 'enter'; lock: LockSpec; options: WorkerAcquireOptions }
  | { op: 'run'; hold: string }
  | { op: 'leave'; fails?: string | undefined }
  | { op: 'release'; hold: string }
  | { op: 'extend'; hold: string; leaseTime: number }
  | { op: 'fork'; flow: string }
  | { op: 'section'; port: number; name: string; who: string; workMs?: number | undefined };

/** The argument of the export `run` of a module that a worker runs. */
export interface WorkerParts {
  readonly name: string;
  readonly clients: ReadonlyMap<string, LockClient>;
  readonly recorder: HistoryRecorder | undefined;
  /** Fires at `stopContending`. */
  readonly stopping: AbortSignal;
}

export type Order =
  | { do: 'createClient'; client: string; options: WorkerClientOptions; events: (keyof LockEvents)[] }
  | { do: 'closeClient'; client: string; options?: CloseOptions | undefined }
  | { do: 'step'; client: string; flow: string; step: Step }
  | { do: 'hold'; hold: string }
  | { do: 'abort'; signal: string; reason?: unknown }
  | { do: 'block'; ms: number }
  | { do: 'setClock'; ms: number }
  | { do: 'sleep' }
  | ({ do: 'contend' } & Load)
  | { do: 'run'; module: string; options: unknown }
  | { do: 'stopContending' }
  | { do: 'resources' }
  | { do: 'exit' };
