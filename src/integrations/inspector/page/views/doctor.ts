import type { FindingView } from '../../messages.js';
import { byId, element, named, setText } from '../parts/dom.js';
import { counted, timeOfDay } from '../parts/format.js';
import { KeyedList, type Item } from '../parts/keyed-list.js';
import type { Model } from '../parts/model.js';

const LEVELS: readonly FindingView['level'][] = ['error', 'warning', 'note', 'ok'];

/** What the doctor found, the most urgent first. */
export class DoctorView {
  readonly #list = new KeyedList<FindingView>(byId('findings'), (found) => JSON.stringify(found), finding);

  constructor(private readonly model: Model) {}

  render(): void {
    const { doctor } = this.model;
    if (doctor === undefined) return;
    const sorted = [...doctor.findings].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
    this.#list.show(sorted);
    const urgent = this.urgent();
    const verdict = urgent === 0 ? 'nothing to do' : counted(urgent, 'finding to look at', 'findings to look at');
    setText(byId('examined'), doctor.at === null ? 'Examining' : `${verdict} · examined at ${timeOfDay(doctor.at)}`);
  }

  urgent(): number {
    return (this.model.doctor?.findings ?? []).filter(({ level }) => level === 'error' || level === 'warning').length;
  }
}

function finding({ check, level, message, server, advice }: FindingView): Item<FindingView> {
  const head = element(
    'span',
    { class: 'line' },
    element('span', { class: 'level' }, level),
    element('strong', {}, check),
  );
  if (server !== null) head.append(named(server, 'at'));
  const node = element('li', { class: `finding ${level}` }, head, element('p', {}, named(message, 'text')));
  if (advice !== null) node.append(element('p', { class: 'advice' }, named(advice, 'text')));
  return { node, update: () => undefined };
}
