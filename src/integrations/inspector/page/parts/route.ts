import type { Named } from '../../messages.js';

/** What the page shows, as the fragment of its address: a link to a lock works after a reload, and Back goes back. */
export const VIEWS = ['locks', 'semaphores', 'waits', 'process', 'doctor'] as const;
type ViewName = (typeof VIEWS)[number];

export interface Route {
  /** `lock` shows one lock, beside the table if there is room. */
  readonly view: ViewName | 'lock';
  readonly lock: Selection | undefined;
}

/** A lock by its name, or by its id where the page has only the beginning of the name. */
export interface Selection {
  readonly by: 'name' | 'id';
  readonly value: string;
}

export const selectionOf = ({ id, name, length }: Named): Selection =>
  name.length === length ? { by: 'name', value: name } : { by: 'id', value: id };

export function linkTo(named: Named): string {
  const { by, value } = selectionOf(named);
  return `#lock?${new URLSearchParams({ [by]: value }).toString()}`;
}

export function routeOf(fragment: string): Route {
  const [view, query] = fragment.replace(/^#/, '').split('?');
  if (view === 'lock') {
    const parameters = new URLSearchParams(query);
    for (const by of ['name', 'id'] as const) {
      const value = parameters.get(by) ?? '';
      if (value !== '') return { view, lock: { by, value } };
    }
  }
  return { view: VIEWS.find((each) => each === view) ?? 'locks', lock: undefined };
}
