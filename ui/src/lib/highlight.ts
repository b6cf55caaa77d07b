/** Comments, strings, numbers and keywords of a line of code, for most languages. One line is all it sees. Pure. */

export interface Token {
  text: string;
  kind: '' | 'comment' | 'string' | 'number' | 'keyword';
}

/** A longer line is hardly written by a person. */
const LINE_MAX = 1000;

const HASH = /\.(py|sh|bash|zsh|rb|pl|ya?ml|toml|r|nix|tf|conf|mk|cmake)$|(^|\/)(Makefile|Dockerfile|justfile)$/i;
const SLASH = /\.(js|mjs|cjs|ts|tsx|jsx|svelte|vue|rs|go|c|h|cc|cpp|hpp|cs|java|kt|swift|scala|php|dart|zig|proto|css|scss|json5?)$/i;
const DASH = /\.(sql|lua|hs|elm|ada)$/i;

const KEYWORDS = new Set(
  ('abstract and as async await begin bool boolean break case catch char class const continue crate def default defer del delete do done elif else elsif end enum esac except export extends extern false fi final finally float fn for foreach from func function global go if impl implements import in instanceof int interface is lambda let local long loop match mod module move mut namespace new nil none not null of or override package pass private protected public raise ref return select self short static string struct super switch then this throw trait true try type typeof undefined union unless unsafe until use using val var void where while with yield').split(' '),
);

function pattern(path: string): RegExp | null {
  const strings = `"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|\`[^\`]*\``;
  const comment = SLASH.test(path) ? '//.*|/\\*.*?(?:\\*/|$)' : HASH.test(path) ? '(?<![\\w$])#.*' : DASH.test(path) ? '--.*' : null;
  return comment === null ? null : new RegExp(`(${comment})|(${strings})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`, 'g');
}

export function tokens(text: string, path: string): Token[] {
  const found: Token[] = [];
  const words = text.length > LINE_MAX ? null : pattern(path);
  let from = 0;
  for (const match of words ? text.matchAll(words) : []) {
    const kind = match[1] ? 'comment' : match[2] ? 'string' : match[3] ? 'number' : KEYWORDS.has(match[0]) ? 'keyword' : '';
    if (!kind) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index), kind: '' });
    found.push({ text: match[0], kind });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), kind: '' });
  return found;
}
