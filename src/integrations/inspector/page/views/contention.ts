import type { Contended, Named, WaitEdge } from '../../messages.js';
import { byId, element, named, nameNode, setText, within } from '../parts/dom.js';
import { duration } from '../../../shared/inspection-words.js';
import { count, counted, elapsed } from '../parts/format.js';
import { cells, KeyedList, type Item } from '../parts/keyed-list.js';
import { sinceRead, type Model } from '../parts/model.js';
import { ownersNode, processNode } from '../parts/owners.js';
import { linkTo } from '../parts/route.js';

const MAX_HOLDERS = 3;

/** Who waits for whom, and which locks were waited for most. */
export class ContentionView {
  readonly #edges: KeyedList<WaitEdge & { readonly key: string }>;
  readonly #contended: KeyedList<Contended>;
  readonly #ages = new Map<HTMLElement, { readonly node: HTMLElement; age: number | null }>();

  constructor(private readonly model: Model) {
    const [waits, contended] = [byId('waits'), byId('contended')];
    this.#edges = new KeyedList(
      within(waits, 'tbody'),
      ({ key }) => key,
      (edge) => this.#edge(waits, edge),
    );
    this.#contended = new KeyedList(
      within(contended, 'tbody'),
      ({ id }) => id,
      (lock) => this.#lock(contended, lock),
    );
  }

  render(): void {
    const { waits, contended } = this.model;
    this.#edges.show(
      waits.value.map((edge, at) => ({
        ...edge,
        key: edge.waiter === 'this client' ? `${at} ${edge.id}` : `${edge.waiter} ${edge.owner ?? ''} ${edge.id}`,
      })),
    );
    this.#contended.show(contended);
    for (const [id, shown] of [
      ['waits', waits.value.length],
      ['contended', contended.length],
    ] as const) {
      byId(id).hidden = shown === 0;
      (byId(id).nextElementSibling as HTMLElement).hidden = shown > 0;
    }
    for (const row of this.#ages.keys()) if (!row.isConnected) this.#ages.delete(row);
    this.tick();
  }

  tick(): void {
    const since = sinceRead(this.model.waits.at);
    for (const { node, age } of this.#ages.values()) setText(node, age === null ? '–' : elapsed(age + since));
  }

  #edge(table: HTMLElement, lock: Named): Item<WaitEdge> {
    const [waiter, holders, node] = [element('td'), element('td'), element('td')];
    const row = element('tr', { role: 'row' }, waiter, lockCell(lock, 'td'), holders, node);
    cells(table, row);
    const ticking = { node, age: null as number | null };
    this.#ages.set(row, ticking);
    let shown = '';
    const update = (edge: WaitEdge): void => {
      ticking.age = edge.age;
      const key = JSON.stringify([edge.count, edge.callSite, edge.process, edge.holders, edge.holderCount]);
      if (key === shown) return;
      shown = key;
      waiter.replaceChildren(waiterNode(edge));
      holders.replaceChildren(
        edge.holders.length === 0
          ? element('span', { class: 'at' }, 'no owner')
          : ownersNode(edge.holders, edge.holderCount, MAX_HOLDERS),
      );
    };
    return { node: row, update };
  }

  #lock(table: HTMLElement, lock: Named): Item<Contended> {
    const fill = element('span');
    const total = element('span', { class: 'rest' });
    const bar = element(
      'span',
      { class: 'lease' },
      element('span', { class: 'bar', 'aria-hidden': 'true' }, fill),
      total,
    );
    const figures = Array.from({ length: 5 }, () => element('td'));
    const row = element('tr', { role: 'row' }, lockCell(lock, 'th'), element('td', {}, bar), ...figures);
    cells(table, row);
    const update = ({ waitedForMs, waiters, mostWaiters, own }: Contended): void => {
      const longest = Math.max(1, ...this.model.contended.map((each) => each.waitedForMs));
      fill.style.transform = `scaleX(${(waitedForMs / longest).toFixed(4)})`;
      setText(total, duration(waitedForMs));
      const mean = own.count === 0 ? '–' : duration(own.totalMs / own.count);
      const texts = [waiters === null ? '?' : count(waiters), count(mostWaiters), count(own.count), mean];
      texts.push(own.count === 0 ? '–' : duration(own.longestMs));
      for (const [at, text] of texts.entries()) setText(figures[at] as HTMLElement, text);
    };
    return { node: row, update };
  }
}

function waiterNode({ waiter, count: calls, owner, process, callSite }: WaitEdge): HTMLElement {
  if (waiter === 'others') return element('span', {}, counted(calls, 'other client'));
  if (waiter === 'queued') return processNode(process, owner ?? '', false);
  const text = calls === 1 ? 'a call of this process' : `${count(calls)} calls of this process`;
  const node = element('span', { class: 'process' }, text);
  if (callSite !== null) node.append(named(callSite, 'site'));
  return node;
}

const lockCell = (lock: Named, tag: 'td' | 'th'): HTMLElement =>
  element(tag, tag === 'th' ? { scope: 'row' } : {}, element('a', { href: linkTo(lock) }, nameNode(lock)));
