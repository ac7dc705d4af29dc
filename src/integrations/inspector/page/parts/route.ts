/** What the page shows, as the fragment of its address: a link to a lock works after a reload, and Back goes back. */
export const VIEWS = ['locks', 'semaphores', 'waits', 'process', 'doctor'] as const;
type ViewName = (typeof VIEWS)[number];

export interface Route {
  /** `lock` shows one lock, beside the table if there is room. */
  readonly view: ViewName | 'lock';
  readonly name: string | undefined;
}

export const linkTo = (name: string): string => `#lock?${new URLSearchParams({ name }).toString()}`;

export function routeOf(fragment: string): Route {
  const [view, query] = fragment.replace(/^#/, '').split('?');
  if (view === 'lock') {
    const name = new URLSearchParams(query).get('name');
    if (name !== null && name !== '') return { view, name };
  }
  return { view: VIEWS.find((each) => each === view) ?? 'locks', name: undefined };
}
