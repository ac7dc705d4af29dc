import { context, SpanStatusCode, trace, type Attributes, type Context, type Span } from '@opentelemetry/api';
import { InstrumentationBase, type InstrumentationConfig } from '@opentelemetry/instrumentation';
import { InvalidArgumentError, type AcquireMessage, type HoldMessage } from '../../index.js';
import { HoldfastMetrics } from './metrics.js';
import { subscribeTo } from './subscriptions.js';

/** The options of {@link HoldfastInstrumentation}. */
export interface HoldfastInstrumentationConfig extends InstrumentationConfig {
  /**
   * Time, in milliseconds. A shorter acquisition gets no span `holdfast.acquire`.
   *
   * @defaultValue 1
   */
  minWait?: number;
  /**
   * Returns the group of a lock for metrics, by its name: one of a few words, such as `order` for `order:42`. A metric
   * never carries the name itself. If the function returns `undefined`, the lock has the group of its `lockName`.
   *
   * @defaultValue the group of a name that `lockName` made: its template, such as `order:{}`
   */
  groupOf?: (lockName: string) => string | undefined;
}

/** An acquisition that has no outcome yet. */
interface PendingAcquire {
  /** Epoch time in milliseconds. */
  readonly startedAt: number;
  readonly parent: Context;
}

const DEFAULT_MIN_WAIT_MS = 1;
const epochNow = (): number => performance.timeOrigin + performance.now();

/**
 * Traces and measures the locks of all clients of the process, through the channels of `node:diagnostics_channel`.
 * - A span `holdfast.acquire` for each acquisition that took longer than `minWait`.
 * - A span `holdfast.hold` for each hold. Spans of the body of `withLock` are its children.
 * - Metrics: `holdfast.acquire.duration` and `holdfast.hold.duration` in seconds, `holdfast.acquire.pending`,
 *   `holdfast.hold.active`, `holdfast.acquire.timeouts`, `holdfast.acquire.handoffs` and `holdfast.hold.lost`.
 *
 * Spans carry the names of locks, and metrics do not. The instrumentation may start before or after the package loads.
 *
 * @throws {InvalidArgumentError} `ERR_LOCK_INVALID_ARGUMENT`: `minWait` is no number of at least 0, or `groupOf` is no
 *   function.
 * @example
 * registerInstrumentations({ instrumentations: [new HoldfastInstrumentation()] });
 */
export class HoldfastInstrumentation extends InstrumentationBase<HoldfastInstrumentationConfig> {
  // The base class calls `enable()` before the fields of this class would be initialized, so they have no initializer.
  declare private acquires: Map<AcquireMessage, PendingAcquire> | undefined;
  declare private holds: Map<HoldMessage, Span>;
  declare private metrics: HoldfastMetrics;
  declare private unsubscribe: (() => void) | undefined;

  constructor(config: HoldfastInstrumentationConfig = {}) {
    checkConfig(config);
    super('holdfast', VERSION, config);
  }

  /** There is no module to patch: the package publishes to its channels. */
  protected override init(): [] {
    return [];
  }

  protected override _updateMetricInstruments(): void {
    this.metrics = new HoldfastMetrics(this.meter, (name) => this.getConfig().groupOf?.(name));
  }

  /** Starts to trace and measure. */
  override enable(): void {
    super.enable();
    if (this.unsubscribe !== undefined) return;
    this.acquires = new Map();
    this.holds = new Map();
    this.unsubscribe = subscribeTo(
      {
        started: (message) => this.acquireStarted(message),
        ended: (message) => this.acquireEnded(message),
      },
      {
        started: (message) => this.holdStarted(message),
        ended: (message) => this.holdEnded(message),
      },
    );
  }

  /** Stops. Spans of open holds end, and the gauges count no open hold and no pending acquisition any more. */
  override disable(): void {
    super.disable();
    if (this.unsubscribe === undefined) return;
    this.unsubscribe();
    this.unsubscribe = undefined;
    for (const message of this.acquires?.keys() ?? []) this.metrics.acquireEnded(message);
    for (const message of [...this.holds.keys()]) this.holdEnded(message);
    this.acquires = undefined;
  }

  private acquireStarted(message: AcquireMessage): void {
    this.acquires?.set(message, { startedAt: epochNow(), parent: context.active() });
    this.metrics.acquireStarted(message);
  }

  private acquireEnded(message: AcquireMessage): void {
    const pending = this.acquires?.get(message);
    if (pending === undefined) return;
    this.acquires?.delete(message);
    this.metrics.acquireEnded(message);
    const { waited = 0, outcome, error } = message;
    if (waited <= (this.getConfig().minWait ?? DEFAULT_MIN_WAIT_MS)) return;
    const { startedAt, parent } = pending;
    const attributes = { ...common(message), ...acquireAttributes(message) };
    const span = this.tracer.startSpan('holdfast.acquire', { startTime: startedAt, attributes }, parent);
    if (outcome === 'failed') failed(span, error);
    span.end(startedAt + waited);
  }

  private holdStarted(message: HoldMessage): void {
    const attributes = { ...common(message), ...holdAttributes(message) };
    const span = this.tracer.startSpan('holdfast.hold', { attributes });
    this.holds.set(message, span);
    this.metrics.holdStarted(message);
    const inside = trace.setSpan(context.active(), span);
    const outer = message.run;
    const run = <T>(body: () => T): T => context.with(inside, () => (outer === undefined ? body() : outer(body)));
    message.run = run;
  }

  private holdEnded(message: HoldMessage): void {
    const span = this.holds.get(message);
    if (span === undefined) return;
    this.holds.delete(message);
    this.metrics.holdEnded(message);
    const { end, lostReason, error } = message;
    if (end !== undefined) span.setAttribute('holdfast.hold.end', end);
    if (lostReason !== undefined) span.setAttribute('holdfast.hold.lost_reason', lostReason);
    if (end === 'lost' || end === 'releaseFailed') failed(span, error);
    span.end();
  }
}

/** The version of the package, in the scope of spans and metrics. */
const VERSION = '0.1.0';

function failed(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  if (error instanceof Error) span.recordException(error);
}

const common = ({ name, group, kind, mode, clientId }: AcquireMessage | HoldMessage): Attributes => ({
  'holdfast.lock.name': name,
  ...(group === undefined ? {} : { 'holdfast.lock.group': group }),
  'holdfast.lock.kind': kind,
  'holdfast.lock.mode': mode,
  'holdfast.client.id': clientId,
});

const acquireAttributes = (message: AcquireMessage): Attributes => ({
  'holdfast.acquire.nested': message.nested,
  ...(message.outcome === undefined ? {} : { 'holdfast.acquire.outcome': message.outcome }),
  ...(message.handedOff === undefined ? {} : { 'holdfast.acquire.handed_off': message.handedOff }),
  ...(message.owner === undefined ? {} : { 'holdfast.hold.owner': message.owner }),
});

const holdAttributes = ({ owner, holdCount }: HoldMessage): Attributes => ({
  'holdfast.hold.owner': owner,
  'holdfast.hold.count': holdCount,
});

function checkConfig({ minWait, groupOf }: HoldfastInstrumentationConfig): void {
  if (minWait !== undefined && !(typeof minWait === 'number' && minWait >= 0)) {
    throw new InvalidArgumentError('minWait', 'a number of at least 0 (ms)', minWait);
  }
  if (groupOf !== undefined && typeof groupOf !== 'function') {
    throw new InvalidArgumentError('groupOf', 'a function of the lock name', groupOf);
  }
}
