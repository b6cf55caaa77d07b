// Shows what the server pushes. It answers no requests of the page and keeps nothing, so nothing private stays here.

const shownBy = async (path) => {
  const windows = await self.clients.matchAll({ type: 'window' });
  return windows.some((client) => client.focused && new URL(client.url).pathname === path);
};

async function show(event) {
  let notice = {};
  try {
    notice = event.data.json();
  } catch {
    // Browsers want something to be shown for every message.
  }
  const path = typeof notice.path === 'string' && /^\/(?!\/)/.test(notice.path) ? notice.path : '/inbox';
  if (await shownBy(path)) return;
  const text = (value, usual) => (typeof value === 'string' && value ? value : usual);
  await self.registration.showNotification(text(notice.title, 'Matsu'), {
    body: text(notice.text, ''),
    // A repetition takes the place of the first one.
    tag: text(notice.id, path),
    icon: '/icon-192.png',
    requireInteraction: notice.event === 'asks',
    data: { path },
  });
}

async function open(path) {
  const address = new URL(path, self.location.origin).href;
  const windows = await self.clients.matchAll({ type: 'window' });
  const there = windows.find((client) => client.url === address) ?? windows[0];
  if (!there) {
    await self.clients.openWindow(address);
    return;
  }
  await there.focus();
  // Of a window that this worker is not in charge of yet, the address cannot be changed.
  if (there.url !== address) await there.navigate(address).catch(() => self.clients.openWindow(address));
}

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('push', (event) => event.waitUntil(show(event)));
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.path));
});
