const KEY = 'holdfast-session';

/**
 * The secret that `holdfast ui` has left in this tab; `undefined` elsewhere. Cookies know no ports, so a cookie would go to
 * every server of the machine. The storage of a tab belongs to one port.
 */
export function sessionSecret(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    // The browser refuses storage.
    return undefined;
  }
}
