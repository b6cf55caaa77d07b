/** Notices that reach this browser while the page is closed. */
import { get, post, remove } from './api';
import { scriptAddress } from './workers';

export interface Subscription { subscription_id: string; service: string; created_at: string }
export interface Push { channel: string | null; public_key: string | null; items: Subscription[] }

/** Which of the subscriptions is this browser's. */
const NAME = 'matsu.push';

export const canPush = (): boolean => isSecureContext && 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;

export const read = (): Promise<Push> => get<Push>('/push');

export const isOwn = (known: Subscription): boolean => known.subscription_id === localStorage.getItem(NAME);

const registration = async (): Promise<ServiceWorkerRegistration> => {
  await navigator.serviceWorker.register(scriptAddress('/service-worker.js'));
  return navigator.serviceWorker.ready;
};

/** base64url, as the server writes it. */
function bytes(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

/** False: the person did not allow notices. */
export async function subscribe(publicKey: string): Promise<boolean> {
  if ((await Notification.requestPermission()) !== 'granted') return false;
  const { pushManager } = await registration();
  // A browser that has subscribed to another sender refuses a new key until it has unsubscribed.
  await (await pushManager.getSubscription())?.unsubscribe();
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(publicKey) });
  const { endpoint, keys } = made.toJSON();
  const stored = await post<Subscription>('/push', { endpoint, keys: { p256dh: keys?.['p256dh'], auth: keys?.['auth'] } });
  localStorage.setItem(NAME, stored.subscription_id);
  return true;
}

export async function unsubscribe(known: Subscription): Promise<void> {
  await remove(`/push/${known.subscription_id}`);
  if (isOwn(known)) await leave();
}

/** This browser takes no more messages, whatever the server has stored. */
export async function leave(): Promise<void> {
  localStorage.removeItem(NAME);
  if (!canPush()) return;
  const known = await navigator.serviceWorker.getRegistration();
  await (await known?.pushManager.getSubscription())?.unsubscribe();
}
