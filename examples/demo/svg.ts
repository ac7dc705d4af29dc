import type { Check } from './checks.js';
import { ALARM, FAINT, FONT, INK, RULE, WORKER_COLORS } from './palette.js';
import { seconds, type HoldBar, type Mark, type Timeline, type Wait, type WorkerStatus } from './timeline.js';

const WIDTH = 1_600;
const MARGIN = { left: 120, right: 32, top: 96 };
const ORDER = { gutter: 24, bar: 30, waiters: 30, gap: 16 };
const FLOW = { height: 11, gap: 3, workerGap: 12 };
const MOST_WAITERS = 8;

/** The whole run as a picture: who held each order, how many waited for it, and what each process did meanwhile. */
export function drawSvg(timeline: Timeline, checks: readonly Check[]): string {
  return new Picture(timeline).draw(checks);
}

class Picture {
  readonly #parts: string[] = [];
  readonly #colors: ReadonlyMap<string, string>;
  readonly #end: number;
  #y = MARGIN.top;

  constructor(private readonly timeline: Timeline) {
    const names = [...timeline.workers.keys()];
    this.#colors = new Map(names.map((name, at) => [name, WORKER_COLORS[at % WORKER_COLORS.length]!]));
    this.#end = Math.max(timeline.endsAt, ...timeline.bars.map(({ from, to = from }) => to));
  }

  draw(checks: readonly Check[]): string {
    this.#header(checks);
    const top = this.#y;
    this.#title('Who holds each order, and how many wait for it');
    for (const order of this.timeline.orders) this.#order(order);
    this.#title('What each process does');
    for (const worker of this.timeline.workers.values()) this.#worker(worker);
    this.#axis(top);
    const height = this.#y + 44;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`,
      ` font-family="${FONT}" font-size="13" fill="${INK}">`,
      `<defs>${hatching('blocked', ALARM, 0.55)}${this.#deadPatterns()}</defs>`,
      `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
      ...this.#parts,
      '</svg>',
    ].join('\n');
  }

  #header(checks: readonly Check[]): void {
    const failed = checks.filter(({ ok }) => !ok);
    const { orders, workers } = this.timeline;
    this.#text(
      24,
      36,
      `holdfast: ${workers.size} processes contend for ${orders.length} orders`,
      'font-size="20" font-weight="600"',
    );
    const verdict = failed.length === 0 ? 'all checks passed' : `failed: ${failed.map(({ name }) => name).join(', ')}`;
    const shown = ['sections entered', 'hand-offs', 'lost holds signalled'];
    const facts = checks.filter(({ name }) => shown.includes(name)).map(({ name, found }) => `${name}: ${found}`);
    const overlaps = checks.find(({ name }) => name.startsWith('overlaps'))?.found ?? '?';
    const line = [`overlaps: ${overlaps}`, ...facts].join('   ·   ');
    this.#text(24, 60, line, `fill="${FAINT}"`);
    this.#text(
      WIDTH - MARGIN.right,
      36,
      verdict,
      `text-anchor="end" font-weight="600" fill="${failed.length === 0 ? '#12925b' : ALARM}"`,
    );
    this.#legend();
  }

  #legend(): void {
    let x = 24;
    const y = 82;
    const entry = (swatch: string, label: string): void => {
      this.#parts.push(`<g transform="translate(${x} ${y - 10})">${swatch}</g>`);
      this.#text(x + 26, y, label, `fill="${FAINT}" font-size="12"`);
      x += 26 + label.length * 6.3 + 18;
    };
    for (const [name, color] of this.#colors) entry(`<rect width="20" height="12" rx="2" fill="${color}"/>`, name);
    const [color] = this.#colors.values();
    entry(
      `<rect width="20" height="12" rx="2" fill="${color}" opacity="0.4"/><rect y="3" width="20" height="6" fill="${color}"/>`,
      'hold count 1, and 2 (inner band)',
    );
    entry(
      `<rect width="20" height="12" rx="2" fill="${color}" opacity="0.4"/>${renewalTick(10, 0, 12)}`,
      'renewed by the watchdog',
    );
    entry(`<g transform="translate(10 10)">${handOffMark(0, 0, color ?? INK)}</g>`, 'handed on inside the process');
    entry(`<rect width="20" height="12" fill="url(#dead-0)"/>`, 'dead, its lease is not over');
    entry(`<rect width="20" height="12" fill="url(#blocked)"/>`, 'event loop blocked');
    entry(`<rect y="6" width="20" height="6" fill="${FAINT}" opacity="0.3"/>`, 'waiting');
  }

  #title(text: string): void {
    this.#y += 26;
    this.#text(24, this.#y, text, 'font-size="14" font-weight="600"');
    this.#y += 6;
  }

  #order(order: string): void {
    this.#y += ORDER.gutter;
    const y = this.#y;
    this.#text(24, y + 20, order, 'font-weight="600"');
    this.#rect(MARGIN.left, y, WIDTH - MARGIN.left - MARGIN.right, ORDER.bar, 'fill="#f5f7fa"');
    const bars = this.timeline.bars.filter((bar) => bar.order === order).sort((a, b) => a.from - b.from);
    for (const bar of bars) this.#hold(bar, y);
    this.#waiters(order, y + ORDER.bar);
    const marks = this.timeline.marks.filter((mark) => mark.order === order && mark.kind !== 'lost');
    for (const mark of marks) this.#callOut(mark, y);
    for (const mark of this.timeline.marks) if (mark.order === order && mark.kind === 'lost') this.#lossMark(mark, y);
    this.#y += ORDER.bar + ORDER.waiters + ORDER.gap;
  }

  #hold(bar: HoldBar, y: number): void {
    const color = this.#color(bar.worker);
    const to = bar.to ?? this.#end;
    const diedAt = this.timeline.workers.get(bar.worker)?.diedAt;
    const sure = bar.ended === 'killed' ? diedAt! : bar.ended === 'lost' ? Math.min(bar.until ?? to, to) : to;
    this.#span(bar.from, sure, y, ORDER.bar, `fill="${color}" opacity="0.4"`);
    for (const { from, to: end = sure } of bar.nested)
      this.#span(from, Math.min(end, sure), y + 8, ORDER.bar - 16, `fill="${color}"`);
    if (bar.handedOff) this.#parts.push(handOffMark(this.#x(bar.from), y, color));
    for (const at of bar.renewals) this.#parts.push(renewalTick(this.#x(at), y, ORDER.bar));
    if (bar.ended === 'killed') {
      this.#span(diedAt!, to, y, ORDER.bar, `fill="url(#dead-${this.#indexOf(bar.worker)})"`);
    } else if (bar.ended === 'lost') {
      // Beside the next holder: it does not know yet, and nothing that it does counts any more.
      this.#span(sure, to, y + ORDER.bar - 7, 7, `fill="url(#blocked)" stroke="${color}" stroke-width="0.8"`);
    }
  }

  /** How many wait, as steps below the bar. */
  #waiters(order: string, y: number): void {
    const changes = this.timeline.waits
      .filter((wait) => wait.order === order)
      .flatMap(({ from, to = this.#end }) => [
        { at: from, by: 1 },
        { at: to, by: -1 },
      ])
      .sort((a, b) => a.at - b.at);
    const step = ORDER.waiters / MOST_WAITERS;
    let count = 0;
    let path = `M${fixed(MARGIN.left)} ${y}`;
    for (const { at, by } of changes) {
      const x = fixed(this.#x(at));
      path += `L${x} ${fixed(y + count * step)}`;
      count += by;
      path += `L${x} ${fixed(y + count * step)}`;
    }
    path += `L${fixed(this.#x(this.#end))} ${y}Z`;
    this.#parts.push(`<path d="${path}" fill="${FAINT}" opacity="0.3"/>`);
    this.#text(MARGIN.left - 8, y + 18, 'waiting', `text-anchor="end" font-size="11" fill="${FAINT}"`);
  }

  #callOut({ at, kind, worker, text }: Mark, y: number): void {
    const x = this.#x(at);
    const label = {
      killed: `✕ ${worker} killed -9`,
      blocked: `${worker} blocks`,
      'taken over': `taken over by ${worker}`,
      lost: text,
    }[kind];
    const color = kind === 'taken over' ? INK : ALARM;
    this.#parts.push(
      `<path d="M${fixed(x)} ${y - 12}V${y + ORDER.bar}" stroke="${color}" stroke-width="1.5"/>`,
      `<circle cx="${fixed(x)}" cy="${y - 12}" r="2.5" fill="${color}"/>`,
    );
    // What happened to the holder stands before its mark, and who came next behind it.
    const anchor = kind === 'taken over' || x < 2 * MARGIN.left ? 'start' : 'end';
    const place = anchor === 'start' ? x + 6 : x - 6;
    this.#text(place, y - 8, label, `text-anchor="${anchor}" font-size="11.5" font-weight="600" fill="${color}"`);
  }

  #lossMark({ at, worker }: Mark, y: number): void {
    const x = this.#x(at);
    this.#parts.push(`<path d="M${fixed(x)} ${y}V${y + ORDER.bar + 8}" stroke="${ALARM}" stroke-width="1.5"/>`);
    this.#text(x + 5, y + ORDER.bar + 13, `${worker} is told`, `font-size="11.5" font-weight="600" fill="${ALARM}"`);
  }

  #worker(worker: WorkerStatus): void {
    this.#y += FLOW.workerGap;
    const top = this.#y;
    const height = worker.flows.length * (FLOW.height + FLOW.gap) - FLOW.gap;
    this.#text(24, top + height / 2 + 4, worker.name, `font-weight="600" fill="${this.#color(worker.name)}"`);
    for (const flow of worker.flows) {
      this.#rect(MARGIN.left, this.#y, WIDTH - MARGIN.left - MARGIN.right, FLOW.height, 'fill="#f5f7fa"');
      const waits = this.timeline.waits.filter((wait) => wait.worker === worker.name && wait.flow === flow);
      for (const wait of waits) this.#wait(wait);
      const bars = this.timeline.bars.filter((bar) => bar.worker === worker.name && bar.flow === flow);
      for (const bar of bars) this.#flowHold(bar, worker);
      this.#y += FLOW.height + FLOW.gap;
    }
    for (const { from, to = this.#end } of worker.blocks)
      this.#span(from, to, top - 2, height + 4, `fill="url(#blocked)" stroke="${ALARM}" stroke-width="1"`);
    if (worker.diedAt !== undefined) {
      const x = this.#x(worker.diedAt);
      this.#rect(x, top - 1, WIDTH - MARGIN.right - x, height + 2, 'fill="#ffffff" opacity="0.75"');
      this.#parts.push(`<path d="M${fixed(x)} ${top - 2}V${top + height + 2}" stroke="${ALARM}" stroke-width="2"/>`);
      this.#text(x + 8, top + height / 2 + 4, 'killed -9', `font-size="11.5" font-weight="600" fill="${ALARM}"`);
    }
  }

  #wait({ from, to = this.#end }: Wait): void {
    this.#span(from, to, this.#y + FLOW.height - 4, 4, `fill="${FAINT}" opacity="0.3"`);
  }

  #flowHold(bar: HoldBar, worker: WorkerStatus): void {
    const to = bar.ended === 'killed' ? worker.diedAt! : (bar.to ?? this.#end);
    this.#span(bar.from, to, this.#y, FLOW.height, `fill="${this.#color(bar.worker)}" opacity="0.85"`);
  }

  #axis(top: number): void {
    const total = this.#end - this.timeline.startedAt;
    const every = total > 20_000 ? 5_000 : 1_000;
    const lines: string[] = [];
    for (let at = 0; at <= total; at += every) {
      const x = fixed(this.#x(this.timeline.startedAt + at));
      lines.push(`<path d="M${x} ${top + 10}V${this.#y + 10}" stroke="${RULE}"/>`);
      this.#text(
        Number(x),
        this.#y + 26,
        `${seconds(at).replace(/\.00$/, '')} s`,
        `text-anchor="middle" font-size="11.5" fill="${FAINT}"`,
      );
    }
    // Behind everything else.
    this.#parts.unshift(...lines);
  }

  #deadPatterns(): string {
    return [...this.#colors.values()].map((color, at) => hatching(`dead-${at}`, color, 0.9)).join('');
  }

  #indexOf(worker: string): number {
    return [...this.#colors.keys()].indexOf(worker);
  }

  #color(worker: string): string {
    return this.#colors.get(worker) ?? INK;
  }

  #x(at: number): number {
    const scale = (WIDTH - MARGIN.left - MARGIN.right) / (this.#end - this.timeline.startedAt);
    return MARGIN.left + (at - this.timeline.startedAt) * scale;
  }

  #span(from: number, to: number, y: number, height: number, attributes: string): void {
    const x = this.#x(from);
    // A hair's breadth between neighbours, and nothing too short to see.
    this.#rect(x, y, Math.max(0.8, this.#x(to) - x - 0.6), height, attributes);
  }

  #rect(x: number, y: number, width: number, height: number, attributes: string): void {
    this.#parts.push(
      `<rect x="${fixed(x)}" y="${fixed(y)}" width="${fixed(width)}" height="${height}" ${attributes}/>`,
    );
  }

  #text(x: number, y: number, text: string, attributes: string): void {
    this.#parts.push(`<text x="${fixed(x)}" y="${fixed(y)}" ${attributes}>${escaped(text)}</text>`);
  }
}

function hatching(id: string, color: string, opacity: number): string {
  return (
    `<pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
    `<rect width="6" height="6" fill="${color}" opacity="0.12"/>` +
    `<rect width="2" height="6" fill="${color}" opacity="${opacity}"/></pattern>`
  );
}

function renewalTick(x: number, y: number, height: number): string {
  return (
    `<path d="M${fixed(x)} ${y}V${y + height}" stroke="#ffffff" stroke-width="3"/>` +
    `<path d="M${fixed(x)} ${y}V${y + height}" stroke="${INK}" stroke-width="1.2"/>`
  );
}

function handOffMark(x: number, y: number, color: string): string {
  return `<path d="M${fixed(x - 3)} ${y - 6}L${fixed(x + 3)} ${y - 3.5}L${fixed(x - 3)} ${y - 1}Z" fill="${color}"/>`;
}

const fixed = (value: number): string => value.toFixed(1);

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
