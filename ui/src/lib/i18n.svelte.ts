/** Words in three languages. English is the type of all keys; the others are loaded when chosen. */
import en from '../text/en.json';

export type Key = keyof typeof en;
export const LANGUAGES = ['en', 'ja', 'ko'] as const;
export type Language = (typeof LANGUAGES)[number];

class Words {
  language = $state<Language>('en');
  table = $state.raw<Record<string, string>>(en);
}

const words = new Words();
const loaders: Record<Exclude<Language, 'en'>, () => Promise<{ default: Record<string, string> }>> = {
  ja: () => import('../text/ja.json'),
  ko: () => import('../text/ko.json'),
};

export const language = (): Language => words.language;

export async function speak(wanted: Language): Promise<void> {
  const table = wanted === 'en' ? en : (await loaders[wanted]()).default;
  words.language = wanted;
  words.table = table;
  document.documentElement.lang = wanted;
}

/** The chosen language, or the browser's if we have it. */
export function preferred(): Language {
  const chosen = localStorage.getItem('matsu.language');
  const wish = [chosen ?? '', ...navigator.languages].map((tag) => tag.slice(0, 2).toLowerCase());
  return LANGUAGES.find((known) => known === wish.find((tag) => (LANGUAGES as readonly string[]).includes(tag))) ?? 'en';
}

/** `t('x', {n: 2})`: with an `n`, `x_one` or `x_other` by the rules of the language. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const { table } = words;
  let found: string | undefined;
  if (typeof values['n'] === 'number') {
    const form = once('plural', (tag) => new Intl.PluralRules(tag)).select(values['n']);
    found = table[`${key}_${form}`] ?? table[`${key}_other`];
  }
  found ??= table[key] ?? en[key];
  return found.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    return typeof value === 'number' ? number(value) : (value ?? '');
  });
}

/** A word the server uses, in the reader's language if we have it. */
export function word(group: string, name: string): string {
  return words.table[`${group}_${name}`] ?? name.replaceAll('_', ' ');
}

/** Making one of these costs more than using it a hundred times, and a list uses them for every row. */
const made = new Map<string, unknown>();
function once<T>(kind: string, make: (language: Language) => T): T {
  const key = `${words.language} ${kind}`;
  if (!made.has(key)) made.set(key, make(words.language));
  return made.get(key) as T;
}

export const number = (value: number, digits = 0): string =>
  once(`number ${digits}`, (tag) => new Intl.NumberFormat(tag, { maximumFractionDigits: digits, minimumFractionDigits: digits })).format(value);

export const clock = (at: string | number): string =>
  once('clock', (tag) => new Intl.DateTimeFormat(tag, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })).format(new Date(at));

export const date = (at: string | number): string => once('date', (tag) => new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeStyle: 'short' })).format(new Date(at));

/** 4m12, 2h05, 12 s: short and of even width. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const two = (part: number) => String(part).padStart(2, '0');
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}`;
  return `${Math.floor(seconds / 86400)}d${two(Math.floor((seconds % 86400) / 3600))}h`;
}
