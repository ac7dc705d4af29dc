import type { Named, OwnHold, OwnStats, OwnWait } from '../../messages.js';
import { byId, element, named, nameNode, setText, within } from '../parts/dom.js';
import { count, elapsed } from '../parts/format.js';
import { cells, KeyedList, type Item } from '../parts/keyed-list.js';
import { LeaseBar } from '../parts/lease.js';
import { sinceRead, type Model } from '../parts/model.js';
import { linkTo } from '../parts/route.js';

const STATS: readonly (readonly [keyof OwnStats, string])[] = [
  ['granted', 'granted'],
  ['waits', 'waited'],
  ['busy', 'busy'],
  ['handOvers', 'handed over'],
  ['renewals', 'renewals'],
  ['renewalFailures', 'failed renewals'],
  ['losses', 'lost'],
  ['failed', 'failed'],
  ['aborted', 'aborted'],
];
/** These deserve a look as soon as there is one. */
const TROUBLE: readonly (keyof OwnStats)[] = ['renewalFailures', 'losses', 'failed'];

interface Ticking {
  readonly time: HTMLElement;
  readonly lease: LeaseBar | undefined;
  age: number;
}

/** The holds and the waiting calls of the client that serves this page. */
export class ProcessView {
  readonly #holds: KeyedList<{ readonly hold: OwnHold; readonly at: number }>;
  readonly #calls: KeyedList<OwnWait & { readonly key: string }>;
  readonly #ticking = new Map<HTMLElement, Ticking>();

  constructor(private readonly model: Model) {
    const [holds, calls] = [byId('holds'), byId('calls')];
    this.#holds = new KeyedList(
      within(holds, 'tbody'),
      ({ hold }) => `${hold.owner} ${hold.id} ${hold.callSite}`,
      ({ hold }) => this.#hold(holds, hold),
    );
    this.#calls = new KeyedList(
      within(calls, 'tbody'),
      ({ key }) => key,
      (call) => this.#call(calls, call),
    );
    for (const [name, label] of STATS) {
      byId('stats').append(element('div', { 'data-stat': name }, element('dt', {}, label), element('dd', {}, '–')));
    }
  }

  render(): void {
    const { own } = this.model;
    if (own === undefined) return;
    const { holds, waits, stats } = own.value;
    this.#holds.show(holds.map((hold) => ({ hold, at: own.at })));
    // Several calls of one line may wait for one lock: their place tells them apart.
    this.#calls.show(waits.map((wait, at) => ({ ...wait, key: `${at} ${wait.id} ${wait.callSite ?? ''}` })));
    for (const [id, shown] of [
      ['holds', holds.length],
      ['calls', waits.length],
    ] as const) {
      byId(id).hidden = shown === 0;
      (byId(id).nextElementSibling as HTMLElement).hidden = shown > 0;
    }
    for (const [name] of STATS) {
      const figure = within(byId('stats'), `[data-stat=${name}]`);
      setText(within(figure, 'dd'), count(stats[name]));
      figure.classList.toggle('trouble', TROUBLE.includes(name) && stats[name] > 0);
    }
    for (const node of this.#ticking.keys()) if (!node.isConnected) this.#ticking.delete(node);
    this.tick();
  }

  tick(): void {
    const since = sinceRead(this.model.own?.at ?? 0);
    for (const { time, lease, age } of this.#ticking.values()) {
      setText(time, elapsed(age + since));
      lease?.tick();
    }
  }

  #hold(table: HTMLElement, hold: OwnHold): Item<{ readonly hold: OwnHold; readonly at: number }> {
    const lease = new LeaseBar();
    const time = element('td');
    const node = element(
      'tr',
      { role: 'row' },
      nameCell(hold),
      callSiteCell(hold.callSite),
      time,
      element('td', {}, lease.node),
    );
    cells(table, node);
    const ticking: Ticking = { time, lease, age: 0 };
    this.#ticking.set(node, ticking);
    let longest = 0;
    const update = ({ hold: now, at }: { readonly hold: OwnHold; readonly at: number }): void => {
      ticking.age = now.age;
      longest = Math.max(longest, now.remaining);
      lease.show(
        now.remaining,
        at,
        longest,
        `${now.isRenewed ? ', renewed' : ''}${now.holdCount > 1 ? ` ×${now.holdCount}` : ''}`,
      );
    };
    return { node, update };
  }

  #call(table: HTMLElement, call: OwnWait): Item<OwnWait> {
    const time = element('td');
    const node = element('tr', { role: 'row' }, nameCell(call), callSiteCell(call.callSite), time);
    cells(table, node);
    const ticking: Ticking = { time, lease: undefined, age: 0 };
    this.#ticking.set(node, ticking);
    const update = ({ age }: OwnWait): void => {
      ticking.age = age;
    };
    return { node, update };
  }
}

const nameCell = (lock: Named): HTMLElement =>
  element('th', { scope: 'row' }, element('a', { href: linkTo(lock) }, nameNode(lock)));

const callSiteCell = (callSite: string | null): HTMLElement =>
  element('td', {}, callSite === null ? element('span', { class: 'at' }, 'not recorded') : named(callSite, 'site'));
