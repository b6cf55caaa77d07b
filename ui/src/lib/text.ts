/** Text of others is text: what could deceive a reader is made visible, and only web links are links. */

/** Direction marks and control characters as what they are. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => {
    const code = mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
    return `⟨U+${code}⟩`;
  });
}

export interface Piece {
  text: string;
  href?: string;
  host?: string;
}

/** Text with its web addresses as parts of their own. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(/https?:\/\/[^\s<>"'`）」』】]+/g)) {
    const address = match[0].replace(/[.,;:!?)\]]+$/, '');
    const href = webAddress(address);
    if (!href) continue;
    if (match.index > from) found.push({ text: visible(text.slice(from, match.index)) });
    found.push({ text: visible(address), href: href.href, host: href.host });
    from = match.index + address.length;
  }
  if (from < text.length) found.push({ text: visible(text.slice(from)) });
  return found;
}

/** Nothing but http and https, and without a hidden login. */
export function webAddress(text: string): URL | null {
  try {
    const url = new URL(text);
    return (url.protocol === 'http:' || url.protocol === 'https:') && !url.username && !url.password ? url : null;
  } catch {
    return null;
  }
}

/** For searching: width and case folded. */
export const folded = (text: string): string => text.normalize('NFKC').toLowerCase();
