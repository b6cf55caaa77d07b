// What each frame of a page costs, read from the browser's own trace. Two clocks: what the page's main thread really worked
// between two frames, which no other program on the machine can lengthen, and what passed on the wall.

const CATEGORIES = ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'blink.user_timing', 'v8'];
const MARK = 'matsu-frames';

export class Frames {
  /** Begins; from now on the page draws a frame whenever the browser would. */
  static async of(browser, page) {
    const frames = new Frames();
    frames.session = await browser.newBrowserCDPSession();
    frames.events = [];
    frames.session.on('Tracing.dataCollected', ({ value }) => frames.events.push(...value));
    await frames.session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: CATEGORIES, excludedCategories: ['*'] } });
    await page.evaluate((mark) => {
      performance.mark(mark);
      const tick = () => requestAnimationFrame(tick);
      if (!window[mark]) tick();
      window[mark] = true;
    }, MARK);
    return frames;
  }

  /** Ends; milliseconds of the longest frame by both clocks, how many there were, and what the longest one consisted of. */
  async end() {
    const all = new Promise((resolve) => this.session.once('Tracing.tracingComplete', resolve));
    await this.session.send('Tracing.end');
    await all;
    await this.session.detach();
    const mark = this.events.find((event) => event.name === MARK);
    const mine = this.events.filter((event) => event.pid === mark.pid && event.tid === mark.tid && event.ts > mark.ts);
    const fired = mine.filter((event) => event.name === 'FireAnimationFrame' && event.tts).sort((a, b) => a.ts - b.ts);
    const found = { count: fired.length, worked: 0, passed: 0, parts: [] };
    for (let n = 1; n < fired.length; n++) {
      const [from, to] = [fired[n - 1], fired[n]];
      const worked = (to.tts - from.tts) / 1000;
      found.passed = Math.max(found.passed, (to.ts - from.ts) / 1000);
      if (worked <= found.worked) continue;
      found.worked = worked;
      const inside = mine.filter((event) => event.tdur > 1000 && event.name !== 'RunTask' && event.ts >= from.ts && event.ts < to.ts);
      found.parts = inside.sort((a, b) => b.tdur - a.tdur).slice(0, 12).map((event) => `${event.name} ${(event.tdur / 1000).toFixed(1)}`);
    }
    return found;
  }
}
