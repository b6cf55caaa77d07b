/** Calls to the server. Every failure is a `Refusal` in words; 401 leads to the login and keeps drafts. */

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly errorId: string,
  ) {
    super(detail);
  }
}

const KEY = 'matsu.key';

export const signedIn = (): boolean => localStorage.getItem(KEY) !== null;

let onSignedOut: () => void = () => {};
export const whenSignedOut = (then: () => void): void => {
  onSignedOut = then;
};

export function forget(): void {
  localStorage.removeItem(KEY);
}

export const headers = (): Record<string, string> => ({ 'X-Matsu-Key': localStorage.getItem(KEY) ?? '' });

async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, headers: headers(), cache: 'no-store' };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.headers = { ...headers(), 'Content-Type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(`/api/v1${path}`, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, 'OFFLINE', '', '');
  }
  if (answer.status === 204) return undefined as T;
  const read: unknown = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const said = read as { error_code?: string; detail?: string; error_id?: string };
    if (answer.status === 401 && path !== '/login') {
      forget();
      onSignedOut();
    }
    throw new Refusal(answer.status, said.error_code ?? String(answer.status), said.detail ?? '', said.error_id ?? '');
  }
  return read as T;
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => send<T>('GET', path, undefined, signal);
export const post = <T>(path: string, body: unknown): Promise<T> => send<T>('POST', path, body);
export const patch = <T>(path: string, body: unknown): Promise<T> => send<T>('PATCH', path, body);
export const remove = <T>(path: string): Promise<T> => send<T>('DELETE', path);

/** Every item of a list that is answered in pages. */
export async function all<T>(path: string): Promise<T[]> {
  const found: T[] = [];
  let after: number | null = null;
  do {
    const page: { items: T[]; next: number | null } = await get(`${path}?limit=200${after === null ? '' : `&after=${after}`}`);
    found.push(...page.items);
    after = page.next;
  } while (after !== null);
  return found;
}

/** The names of the agents that are installed here. */
export async function installedAgents(): Promise<string[]> {
  const { agents } = await tool<{ agents: { name: string; installed: boolean }[] }>('list_agents', { probe: false });
  return agents.filter((agent) => agent.installed).map((agent) => agent.name);
}

/** A tool as a client calls it; a refusal inside the answer becomes one here. */
export async function tool<T>(name: string, args: unknown): Promise<T> {
  const answer = await post<{ ok: boolean; error_code?: string; error?: string; error_id?: string }>(`/tools/${name}`, args);
  if (!answer.ok) throw new Refusal(200, answer.error_code ?? '', answer.error ?? '', answer.error_id ?? '');
  return answer as T;
}

/** Turns a one-time code into a session. */
export async function login(code: string): Promise<void> {
  const { key } = await post<{ key: string }>('/login', { code });
  localStorage.setItem(KEY, key);
}

export async function logout(): Promise<void> {
  await remove('/session');
  forget();
  onSignedOut();
}
