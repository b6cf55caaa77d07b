// The pictures of the book, taken of the real page. Written only where MATSU_PICTURES says so (`make pictures`).
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Home, openBrowser, signedIn } from './home.mjs';
import { Agent, bringDocuments, hireScribe, settled } from './scripted.mjs';

/** Those the book shows. */
const BOOK = new Set(['overview-en-light', 'overview-ja-dark', 'inbox-ko-light', 'research-en-light', 'agent-en-dark', 'chat-en-light', 'overview-en-light-narrow', 'agent-ja-dark-narrow']);
const FOLDER = process.env.MATSU_PICTURES;
const PROMPTS = ['Summarise README.md', 'Find what slows the nightly build', 'Review the change to the queue', 'Compare the two designs'];

/** Places that are looked at only for whether they fit. */
const OTHERS = ['tasks', 'jobs', 'research', 'auth', 'agents', 'chat', 'notifications', 'calibration', 'rules', 'settings', 'doctor'].map((name) => [`${name}-list`, `/${name}`]);
const LIVE = /live|接続中|실시간/;

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
  const { claims } = await tool('get_materials', { task_id: research.task_id, options: { limit: 50, detail: 'full' } });
  const [claim] = claims.sort((one, other) => other.evidence.length - one.evidence.length);
  assert.ok(claim?.evidence.length >= 2, 'a claim with two passages');
  // No judge speaks here, so a person says what the passages are.
  const sides = ['supports', 'refutes'];
  for (const [n, side] of sides.entries()) await tool('feedback', { action: 'edge_correct', edge_id: claim.evidence[n].edge_id, correct_relation: side });
  return { asks: asks.task_id, research: research.task_id, contested: claim.id };
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
      await page.locator('li.card .question').waitFor();
      await shot('inbox');
      await page.goto(`${home.address}/tasks/${asks}?tab=log`);
      await page.locator('.question').waitFor();
      await page.locator('.log').getByText('None is written yet.').waitFor();
      await shot('agent');
      await page.goto(`${home.address}/tasks/${research}?tab=graph&claim=${contested}`);
      await page.locator('canvas[data-settled="true"]').waitFor();
      await shot('research');
      await page.setViewportSize({ width: 360, height: 740 });
      for (const [name, path] of [['overview', '/'], ['inbox', '/inbox'], ['agent', `/tasks/${asks}?tab=log`], ['research', `/tasks/${research}?tab=claims`], ...(colorScheme === 'light' ? OTHERS : [])]) {
        await page.goto(home.address + path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.getByRole('status').filter({ hasText: LIVE }).first().waitFor();
        await picture(page, `${name}-${language}-${colorScheme}-narrow`);
      }
      await context.close();
    }
  }
  await browser.close();
  await home.close();
});

const TALK = [
  ['Is the migration safe to run twice?', 'Yes. It looks at `schema_version` first and does nothing if the column is there:\n\n```sql\nALTER TABLE jobs ADD COLUMN checkpoint BLOB;\n```\n\nTwo things to know:\n- it takes an exclusive lock for about a second\n- the old version goes on reading while it runs'],
  ['Then go on with the second half.', 'I have begun. The index comes last, so that a node that dies in between leaves nothing half done.'],
];

test('a chat has a face, on a telephone too', async () => {
  const home = await new Home().serve();
  const browser = await openBrowser();
  const agent = await new Agent(home, 'reviewer').register();
  const { chat_id } = await home.call('POST', '/api/v1/chats', { agent_id: 'reviewer', project_id: 'default' });
  const gone = agent.chat((content) => new Map(TALK).get(content));
  const { context, page } = await signedIn(home, browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${home.address}/chat/${chat_id}`);
  for (const [said, answer] of TALK) {
    await page.getByRole('textbox', { name: 'Message' }).fill(said);
    await page.getByRole('textbox', { name: 'Message' }).press('Enter');
    await page.getByRole('log').getByText(answer.split(/[.\n]/)[0]).first().waitFor();
  }
  await page.getByText('waiting for the reply').waitFor({ state: 'detached' });
  await picture(page, 'chat-en-light');
  await page.setViewportSize({ width: 360, height: 740 });
  await picture(page, 'chat-en-narrow');
  await home.call('POST', `/api/v1/chats/${chat_id}/end`, {});
  await gone;
  await context.close();
  await browser.close();
  await home.close();
});

async function picture(page, name) {
  // Beyond the edge of the window nothing scrolls sideways, in any language.
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} fits`);
  if (!FOLDER || !(BOOK.has(name) || process.env.MATSU_PICTURES_ALL)) return;
  mkdirSync(FOLDER, { recursive: true });
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
}
