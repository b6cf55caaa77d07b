/** The time, as often as anybody on the page needs it. Bars and ages grow by this clock, not by events. */
class Now {
  ms = $state(Date.now());
}

const now = new Now();
setInterval(() => {
  if (!document.hidden) now.ms = Date.now();
}, 1000);

export const nowMs = (): number => now.ms;
