/** What a person chose on this browser. */
export interface Choices {
  theme: 'system' | 'light' | 'dark';
  density: 'compact' | 'comfortable';
  sendWith: 'enter' | 'ctrl-enter';
  keys: boolean;
  notify: boolean;
}

const NAME = 'matsu.settings';
const DEFAULTS: Choices = { theme: 'system', density: 'compact', sendWith: 'enter', keys: true, notify: false };

function stored(): Choices {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(NAME) ?? '{}') as Partial<Choices>) };
  } catch {
    return DEFAULTS;
  }
}

export const choices: Choices = $state(stored());

export function choose<K extends keyof Choices>(name: K, value: Choices[K]): void {
  choices[name] = value;
  localStorage.setItem(NAME, JSON.stringify(choices));
  show();
}

export function show(): void {
  const root = document.documentElement;
  if (choices.theme === 'system') delete root.dataset['theme'];
  else root.dataset['theme'] = choices.theme;
  root.dataset['density'] = choices.density;
}
