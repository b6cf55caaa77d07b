// The pictures of the book, taken of the real page. Written only where MATSU_PICTURES says so (`make pictures`).
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Home, openBrowser, signedIn } from './home.mjs';
import { Agent, bringDocuments, hireScribe, settled } from './scripted.mjs';

/** Those the book shows. */
const BOOK = new Set(['overview-en-light', 'overview-ja-dark', 'inbox-ko-light', 'research-en-light', 'agent-en-dark', 'chat-en-light']);
const FOLDER = process.env.MATSU_PICTURES;
const PROMPTS = ['Summarise README.md', 'Find what slows the nightly build', 'Review the change to the queue', 'Compare the two designs'];

/** A day's work: runs that ended, one that asks, one that goes on, one that is blocked, and research. */
async function work(home) {
  const tool = (name, args) => home.call('POST', `/api/v1/tools/${name}`, args);
  const run = (message, mode) => tool('use_agent', { cli_name: 'scribe', message, run_async: true, ...(mode ? { mode } : {}) });
  for (const prompt of PROMPTS) await run(prompt);
  const asks = await run('Write a note about waiting', 'workspace-write');
  await run('Watch the queue forever');
  const blocked = await run('Rewrite the parser, and go on forever');
  await home.call('PATCH', `/api/v1/tasks/${blocked.task_id}`, { status: 'blocked', message: 'Wait for the review.' });
  const research = await tool('create_task', { query: 'Do heat pumps pay off?', config: { engines: ['local'] } });
  await tool('queue_searches', { task_id: research.task_id, queries: ['heat pump payback time', 'heat pump noise decibels'] });
  await settled(home, research.task_id);
  const { claims } = await tool('get_materials', { task_id: research.task_id, options: { only: 'contested' } });
  assert.ok(claims.length > 0, 'somebody disagrees');
  return { asks: asks.task_id, research: research.task_id, contested: claims[0].id };
}

test('the main pages have a face, in light and dark and three languages', async () => {
  const home = new Home();
  hireScribe(home);
  bringDocuments(home);
  await home.serve();
  const browser = await openBrowser();
  const { asks, research, contested } = await work(home);
  const link = { first: home.link };
  for (const [language, locale, words] of [['en', 'en-GB', 'Overview'], ['ja', 'ja-JP', '概要'], ['ko', 'ko-KR', '개요']]) {
    for (const colorScheme of ['light', 'dark']) {
      home.link = link.first ?? null;
      link.first = null;
      const { context, page } = await signedIn(home, browser, { locale, colorScheme, viewport: { width: 1280, height: 800 } });
      const shot = (name) => picture(page, `${name}-${language}-${colorScheme}`);
      assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), words);
      await page.getByRole('row').nth(6).waitFor();
      await shot('overview');
      await page.goto(`${home.address}/inbox`);
      await page.locator('li.card').nth(1).waitFor();
      await shot('inbox');
      await page.goto(`${home.address}/tasks/${asks}?tab=log`);
      await page.locator('.question').waitFor();
      await shot('agent');
      await page.goto(`${home.address}/tasks/${research}?tab=graph&claim=${contested}`);
      await page.locator('canvas[data-settled="true"]').waitFor();
      await shot('research');
      await context.close();
    }
  }
  await browser.close();
  await home.close();
});

test('a chat has a face', async () => {
  const home = await new Home().serve();
  const browser = await openBrowser();
  const agent = await new Agent(home, 'reviewer').register();
  const { chat_id } = await home.call('POST', '/api/v1/chats', { agent_id: 'reviewer', project_id: 'default' });
  const gone = agent.chat();
  for (const content of ['Is the migration safe to run twice?', 'Then go on with the second half.']) {
    await home.call('POST', `/api/v1/chats/${chat_id}/messages`, { content });
  }
  const { context, page } = await signedIn(home, browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${home.address}/chat/${chat_id}`);
  await page.getByText('You said: Then go on').waitFor();
  await picture(page, 'chat-en-light');
  await home.call('POST', `/api/v1/chats/${chat_id}/end`, {});
  await gone;
  await context.close();
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
