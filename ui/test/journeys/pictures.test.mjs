// The pictures of the book, taken of the real page. Written only where MATSU_PICTURES says so (`make pictures`).
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Home, noop, openBrowser, signedIn, sleep } from './home.mjs';

/** Those the book shows. */
const BOOK = new Set(['overview-en-light', 'overview-ja-dark', 'inbox-ko-light']);
const FOLDER = process.env.MATSU_PICTURES;

test('the main pages have a face, in light and dark and three languages', async () => {
  const home = await new Home().serve();
  const browser = await openBrowser();
  for (let n = 0; n < 5; n++) await home.submit([noop(), sleep(400 + n * 300), noop()]);
  await home.submit([sleep(600_000), sleep(600_000)]);
  const blocked = await home.submit([sleep(600_000)]);
  await home.call('PATCH', `/api/v1/tasks/${blocked}`, { status: 'blocked', message: 'Wait for the review.' });
  const link = { first: home.link };
  for (const [language, locale, words] of [['en', 'en-GB', 'Overview'], ['ja', 'ja-JP', '概要'], ['ko', 'ko-KR', '개요']]) {
    for (const colorScheme of ['light', 'dark']) {
      home.link = link.first ?? null;
      link.first = null;
      const { context, page } = await signedIn(home, browser, { locale, colorScheme, viewport: { width: 1280, height: 800 } });
      assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), words);
      await page.getByRole('row').nth(5).waitFor();
      await picture(page, `overview-${language}-${colorScheme}`);
      await page.goto(`${home.address}/inbox`);
      await page.locator('li.card').first().waitFor();
      await picture(page, `inbox-${language}-${colorScheme}`);
      await context.close();
    }
  }
  await browser.close();
  await home.close();
});

async function picture(page, name) {
  // Beyond the edge of the window nothing scrolls sideways, in any language.
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} fits`);
  if (!FOLDER || !BOOK.has(name)) return;
  mkdirSync(FOLDER, { recursive: true });
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
}
