import type { OwnerView, ProcessView } from '../../messages.js';
import { element, named } from './dom.js';

/** The process of an owner: its client's name, and where it runs. A JVM or a process that is gone is unknown. */
export function processNode(process: ProcessView | null, owner: string, isThisClient: boolean): HTMLElement {
  if (process === null) {
    return element(
      'span',
      { class: 'process' },
      named(owner, 'owner'),
      element('span', { class: 'at' }, 'process unknown'),
    );
  }
  const place = named(`${process.host} · ${process.pid}`, 'at');
  return element(
    'span',
    { class: 'process' },
    process.clientName === '' ? named(process.host, 'client') : named(process.clientName, 'client'),
    place,
    isThisClient && element('span', { class: 'tag' }, 'this process'),
  );
}

/** What of an owner's hold is not the usual: its mode and its count. */
export function holdTags({ mode, holdCount }: OwnerView): HTMLElement[] {
  const tags = [mode === 'exclusive' ? '' : mode, holdCount > 1 ? `${holdCount} holds` : ''];
  return tags.filter((tag) => tag !== '').map((tag) => element('span', { class: 'tag' }, tag));
}

/** The first owners of a lock, for a cell. `count`: the number of all owners; `null` if it is unknown. */
export function ownersNode(owners: readonly OwnerView[], count: number | null, most: number): HTMLElement {
  const node = element('span', { class: 'owners' });
  for (const owner of owners.slice(0, most)) {
    const shown = processNode(owner.process, owner.owner, owner.isThisClient);
    shown.append(...holdTags(owner));
    node.append(shown);
  }
  const more = moreOwners(Math.min(most, owners.length), count);
  if (more !== '') node.append(element('span', { class: 'at' }, more));
  return node;
}

/** How many owners there are besides those that are shown. */
export const moreOwners = (shown: number, count: number | null): string =>
  count === null ? 'and more' : count > shown ? `and ${(count - shown).toLocaleString('en')} more` : '';

/** Whatever the owners show, so that an unchanged cell is left alone. */
export const ownersKey = (owners: readonly OwnerView[]): string =>
  JSON.stringify(owners.map(({ owner, mode, holdCount, process }) => [owner, mode, holdCount, process]));
