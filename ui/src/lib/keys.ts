/** Single keys and `g` chords. Off while a person types or composes, and if they were switched off. */
import { choices } from './settings.svelte';

type Action = () => void;
const layers: Map<string, Action>[] = [];
let chord: ReturnType<typeof setTimeout> | null = null;

/** Keys of a page while it is open: `j`, `Shift+d`, `g o`. The newest layer answers first. */
export function bind(keys: Record<string, Action>): () => void {
  const layer = new Map(Object.entries(keys));
  layers.push(layer);
  return () => {
    const at = layers.indexOf(layer);
    if (at >= 0) layers.splice(at, 1);
  };
}

/** Whether an Enter belongs to the input method and not to us. */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229;

/** What Enter does in a field that has no form, but never the Enter that ends a composition. */
export const onEnter = (action: Action) => (event: KeyboardEvent): void => {
  if (event.key !== 'Enter' || isComposing(event)) return;
  event.preventDefault();
  action();
};

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

export function onKey(event: KeyboardEvent): void {
  if (isComposing(event) || event.metaKey || event.altKey) return;
  const name = spell(event);
  if (event.ctrlKey) return void act(`Ctrl+${name}`, event);
  if (isField(event.target) || !choices.keys) {
    if (event.key === 'Escape' && event.target instanceof HTMLElement) event.target.blur();
    return;
  }
  if (chord) {
    clearTimeout(chord);
    chord = null;
    if (act(`g ${name}`, event)) return;
  } else if (name === 'g') {
    chord = setTimeout(() => (chord = null), 1200);
    return;
  }
  act(name, event);
}

function spell(event: KeyboardEvent): string {
  const key = event.key === ' ' ? 'Space' : event.key;
  return event.shiftKey && /^[a-zA-Z]$/.test(key) ? `Shift+${key.toLowerCase()}` : key;
}

function act(name: string, event: KeyboardEvent): boolean {
  for (const layer of [...layers].reverse()) {
    const action = layer.get(name);
    if (action) {
      event.preventDefault();
      action();
      return true;
    }
  }
  return false;
}
