/** Where we are. The address is the only state of filters and tabs, so a link shows what its sender saw. */

class Place {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));
  /** Grows when another page is shown, so that its heading takes the focus. */
  moves = $state(0);
}

export const place = new Place();

function read(): void {
  const moved = place.path !== location.pathname;
  place.path = location.pathname;
  place.query = new URLSearchParams(location.search);
  if (moved) place.moves++;
}

addEventListener('popstate', read);

export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  read();
}

/** Sets one part of the query; nothing for an empty value. */
export function setQuery(name: string, value: string, how: 'push' | 'replace' = 'replace'): void {
  const query = new URLSearchParams(place.query);
  if (value) query.set(name, value);
  else query.delete(name);
  const text = query.toString();
  go(text ? `${place.path}?${text}` : place.path, how);
}

/** Links of our own are followed without a reload. */
export function onLinkClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
