// Talking with models: a tool they use, a person's word on another, and a page that is reloaded in mid-answer.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, signedIn, sleep } from './home.mjs';

let browser;
let home;
before(async () => {
  browser = await openBrowser();
  home = new Home();
  const folder = join(home.folder, '.config/matsu');
  mkdirSync(folder, { recursive: true });
  const replies = [
    { when: 'count', text: Array.from({ length: 200 }, (_, n) => `${n}. `), pause_ms: 100 },
    { when: 'tasks', calls: [{ name: 'get_task_status', arguments: {} }] },
    { when: 'tasks', text: ['One task is open.'] },
    { text: ['You said: {message}'] },
  ];
  writeFileSync(join(folder, 'script.json'), JSON.stringify({ replies }));
  writeFileSync(join(folder, 'config.toml'), `[providers.echo]\nwire = "scripted"\nscript = "${join(folder, 'script.json')}"\n[providers.other]\nwire = "scripted"\nscript = "${join(folder, 'script.json')}"\n`);
  await home.serve();
});
after(async () => {
  await browser.close();
  await home.close();
});

async function begin(page, ...models) {
  await page.getByRole('link', { name: 'Chat' }).click();
  const fresh = page.getByRole('button', { name: 'New' });
  if (!(await page.getByRole('group', { name: 'With models' }).isVisible())) await fresh.click();
  for (const model of models) await page.getByRole('checkbox', { name: model }).check();
  await page.getByRole('button', { name: 'Begin' }).last().click();
  await page.getByRole('log').waitFor();
}

async function say(page, text) {
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill(text);
  await field.press('Enter');
}

test('a model uses a tool and answers; a line for nobody is a note', async () => {
  await home.submit([sleep(600_000)]);
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await begin(page, 'echo', 'other');
  const log = page.getByRole('log');
  await say(page, '@echo which tasks are there?');
  await log.getByText('get_task_status').waitFor();
  await log.getByText('One task is open.').waitFor();
  await page.getByRole('textbox', { name: 'Message' }).fill('remember Friday');
  await page.getByText('a note: no model answers').waitFor();
  await page.getByRole('textbox', { name: 'Message' }).fill('@all hello');
  await page.getByText('goes to echo, other').waitFor();
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
  await log.getByText('You said: @all hello').nth(1).waitFor();
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a reload in mid-answer loses nothing, and the answer can be stopped', async () => {
  const { context, page } = await signedIn(home, browser);
  await begin(page, 'echo');
  await say(page, '@echo count');
  const answer = page.getByRole('log').getByRole('article').last();
  await answer.getByText(/^0\. 1\. 2\. /).waitFor();
  await page.reload();
  await answer.getByText(/^0\. 1\. 2\. .* 1\d\. /).waitFor();
  await page.getByRole('button', { name: 'Stop answering' }).click();
  await page.waitForFunction(() => !document.querySelector('[role="log"] .cursor'));
  const text = await answer.locator('p.text').innerText();
  const numbers = text.trim().split(/\.\s*/).filter(Boolean).map(Number);
  assert.deepEqual(numbers, numbers.map((_, n) => n), 'each once, in order');
  assert.ok(numbers.length > 10 && numbers.length < 200, text);
  assert.deepEqual(page.complaints, []);
  await context.close();
});
