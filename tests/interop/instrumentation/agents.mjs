// @ts-check
/*
 * Agents that observe a process, each behind the same functions. All except OpenTelemetry are too large for the
 * dependencies; .ci/suites/instrumentation.mjs installs them.
 */

/** @typedef {{ name: string, parent: string | undefined }} Seen a record of an agent, and its parent */
/** @typedef {() => Promise<void>} Work */
/**
 * @typedef {object} Agent
 * @property {(name: string, work: Work) => Promise<void>} inRequest runs `work` as a request that the agent records
 * @property {() => Promise<Seen[]>} seen everything recorded so far
 * @property {() => void} [stop] takes the agent out of the running process, where it can be
 */

/**
 * @typedef {object} Sentry
 * @property {(options: object) => void} init
 * @property {(options: { name: string, forceTransaction: boolean }, work: Work) => Promise<void>} startSpan
 * @property {(ms: number) => Promise<boolean>} flush
 */
/**
 * @typedef {object} SentryEvent
 * @property {string} transaction
 * @property {{ trace: { span_id: string } }} contexts
 * @property {{ span_id: string, parent_span_id: string, description: string, data: Record<string, string> }[]} spans
 */
/** @typedef {{ span_id: bigint, parent_id: bigint, resource: string }} DatadogSpan */
/**
 * @typedef {object} Datadog
 * @property {(options: object) => void} init
 * @property {(name: string, work: Work) => Promise<void>} trace
 * @property {{ _exporter: { export(spans: DatadogSpan[]): void } }} _tracer
 */
/** @typedef {{ id: unknown, name: string }} Segment */
/** @typedef {{ trace: { root: Segment, getChildren(id: unknown): Segment[] } }} Transaction */
/**
 * @typedef {object} NewRelic
 * @property {(name: string, work: Work) => Promise<void>} startBackgroundTransaction
 * @property {{ on(event: 'transactionFinished', listener: (transaction: Transaction) => void): void }} agent
 */

/** New Relic names its records by a path. @param {string} name */
const lastOf = (name) => name.slice(name.lastIndexOf('/') + 1);

/** @type {Record<string, (load: NodeJS.Require) => Agent>} */
export const AGENTS = {
  opentelemetry(require) {
    const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } =
      /** @type {typeof import('@opentelemetry/sdk-trace-node')} */ (require('@opentelemetry/sdk-trace-node'));
    const { IORedisInstrumentation } = /** @type {typeof import('@opentelemetry/instrumentation-ioredis')} */ (
      require('@opentelemetry/instrumentation-ioredis')
    );
    const exporter = new InMemorySpanExporter();
    const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    provider.register();
    const instrumentation = new IORedisInstrumentation();
    instrumentation.setTracerProvider(provider);
    const tracer = provider.getTracer('test');
    return {
      inRequest: (name, work) =>
        tracer.startActiveSpan(name, async (span) => {
          await work();
          span.end();
        }),
      seen() {
        const spans = exporter.getFinishedSpans();
        const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
        const seen = spans.map(({ name, parentSpanContext }) => ({
          name,
          parent: names.get(parentSpanContext?.spanId ?? ''),
        }));
        return Promise.resolve(seen);
      },
      stop: () => instrumentation.disable(),
    };
  },

  sentry(load) {
    const sentry = /** @type {Sentry} */ (load('@sentry/node'));
    /** @type {Seen[]} */
    const seen = [];
    sentry.init({
      dsn: 'http://key@127.0.0.1:9/1',
      tracesSampleRate: 1,
      transport: () => ({ send: () => Promise.resolve({}), flush: () => Promise.resolve(true) }),
      /** Nothing is sent. @param {SentryEvent} event */
      beforeSendTransaction({ transaction, contexts, spans }) {
        const names = new Map([[contexts.trace.span_id, transaction]]);
        for (const { data, description, parent_span_id } of spans) {
          const statement = data['db.statement'] ?? data['db.query.text'] ?? description;
          seen.push({ name: statement.split(' ')[0] ?? '', parent: names.get(parent_span_id) });
        }
        return null;
      },
    });
    return {
      inRequest: (name, work) => sentry.startSpan({ name, forceTransaction: true }, work),
      async seen() {
        await sentry.flush(2_000);
        return [...seen];
      },
    };
  },

  'dd-trace'(load) {
    const tracer = /** @type {Datadog} */ (load('dd-trace'));
    tracer.init({ startupLogs: false, flushInterval: 1 });
    /** @type {Seen[]} */
    const seen = [];
    // The data for the Datadog agent of the machine.
    tracer._tracer._exporter.export = (spans) => {
      const names = new Map(spans.map(({ span_id, resource }) => [span_id.toString(), resource]));
      for (const { resource, parent_id } of spans) {
        seen.push({ name: resource, parent: names.get(parent_id.toString()) });
      }
    };
    return {
      inRequest: (name, work) => tracer.trace(name, work),
      seen: () => Promise.resolve([...seen]),
    };
  },

  newrelic(load) {
    const newrelic = /** @type {NewRelic} */ (load('newrelic'));
    /** @type {Seen[]} */
    const seen = [];
    newrelic.agent.on('transactionFinished', ({ trace }) => {
      /** @param {Segment} parent */
      const walk = (parent) => {
        for (const child of trace.getChildren(parent.id)) {
          seen.push({ name: lastOf(child.name), parent: lastOf(parent.name) });
          walk(child);
        }
      };
      walk(trace.root);
    });
    return {
      inRequest: (name, work) => newrelic.startBackgroundTransaction(name, work),
      seen: () => Promise.resolve([...seen]),
    };
  },
};
