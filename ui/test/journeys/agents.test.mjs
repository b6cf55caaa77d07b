// Running agents from the page: a question answered, a patch read and applied, another run ended. The agent is a program
// of the test's own.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, signedIn } from './home.mjs';
import { hireScribe } from './scripted.mjs';

let browser;
let home;
let repository;
before(async () => {
  browser = await openBrowser();
  home = new Home();
  repository = hireScribe(home);
  await home.serve();
});
after(async () => {
  await browser.close();
  await home.close();
});

async function run(page, prompt, mode) {
  await page.getByRole('link', { name: 'Agents' }).click();
  const card = page.locator('li.card').filter({ has: page.getByRole('heading', { name: 'scribe' }) });
  await card.getByRole('button', { name: 'Run' }).click();
  if (mode) await page.getByRole('combobox', { name: 'Mode' }).selectOption(mode);
  await page.getByRole('textbox', { name: 'Prompt' }).fill(prompt);
  await page.locator('form').getByRole('button', { name: 'Run' }).click();
  await page.getByRole('tab', { name: 'Log' }).waitFor();
}

test('an agent asks, is answered, and its changes are read and applied, without a reload', async () => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await run(page, 'Write a note', 'workspace-write');
  const question = page.getByRole('region', { name: 'Question' });
  await question.getByText('May I write notes.txt?').waitFor({ timeout: 30_000 });
  // Each of the task's changes is passed in again; what was logged stays.
  await page.getByRole('region', { name: 'Log' }).getByText('None is written yet.').waitFor();
  assert.deepEqual(await axeBoth(page), {});
  await question.getByRole('button', { name: 'allow' }).click();
  await page.getByText('completed').first().waitFor({ timeout: 30_000 });
  await page.getByRole('tab', { name: 'Result' }).click();
  await page.getByText('It waits, so that you need not.').waitFor();
  await page.getByRole('tab', { name: 'Review' }).click();
  await page.getByRole('row').filter({ hasText: '+added: waiting is cheap' }).waitFor();
  assert.deepEqual(await axeBoth(page), {});
  assert.throws(() => readFileSync(join(repository, 'notes.txt')), 'nothing is in the tree before it is applied');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await page.getByText('The changes are in your tree.').waitFor();
  assert.equal(readFileSync(join(repository, 'notes.txt'), 'utf8'), 'waiting is cheap\n');
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('the inbox clears what it shows: a question by its key, a blocked task by its button', async () => {
  const use = (message, mode) => home.call('POST', '/api/v1/tools/use_agent', { cli_name: 'scribe', message, run_async: true, mode });
  const { task_id: blocked } = await use('Go on forever', 'read-only');
  const { task_id: first } = await use('Write a note about inboxes', 'workspace-write');
  const { task_id: second } = await use('Write another note', 'workspace-write');
  await home.call('PATCH', `/api/v1/tasks/${blocked}`, { status: 'blocked', message: 'Wait.' });
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await page.getByRole('link', { name: 'Inbox' }).first().click();
  const card = (id) => page.locator('li.card').filter({ has: page.locator(`a[href="/tasks/${id}"]`) });
  for (const id of [first, second]) await card(id).getByText('May I write notes.txt?').waitFor({ timeout: 30_000 });
  assert.equal(await page.locator('li.card .question kbd').count(), 2, 'the numbers belong to one of the questions');
  const current = await page.locator('li.card.at a[href^="/tasks/"]').first().getAttribute('href');
  await page.keyboard.press('2');
  await page.locator(`li.card.at a[href="${current}"]`).waitFor({ state: 'detached', timeout: 30_000 });
  const other = current.endsWith(first) ? second : first;
  await card(other).getByText('May I write notes.txt?').waitFor();
  await card(blocked).getByRole('button', { name: 'Resume' }).click();
  await card(blocked).getByText('asks you').or(card(blocked).getByText('Wait.')).waitFor({ state: 'detached' });
  assert.deepEqual(await axeBoth(page), {});
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  for (const id of [blocked, first, second]) await home.call('PATCH', `/api/v1/tasks/${id}`, { status: 'cancelled', mode: 'immediate' }).catch(() => {});
  await context.close();
});

test('a failed run is continued from the inbox', async () => {
  const { task_id: late } = await home.call('POST', '/api/v1/tools/use_agent', { cli_name: 'scribe', message: 'Go on forever', run_async: true, timeout: 1 });
  const { context, page } = await signedIn(home, browser);
  await page.getByRole('link', { name: 'Inbox' }).first().click();
  const card = page.locator('li.card').filter({ has: page.locator(`a[href="/tasks/${late}"]`) });
  await card.getByRole('button', { name: 'Continue' }).click({ timeout: 30_000 });
  await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && !url.pathname.endsWith(late));
  const next = new URL(page.url()).pathname.split('/').at(-1);
  await home.call('PATCH', `/api/v1/tasks/${next}`, { status: 'cancelled', mode: 'immediate' });
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a run that does not end is cancelled, and continued', async () => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await run(page, 'Go on forever');
  await page.getByText('running').first().waitFor();
  await page.getByRole('button', { name: 'Cancel at once' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('cancelled').first().waitFor();
  assert.deepEqual(await axeBoth(page), {});
  // What it left is gone on with, as a task of its own.
  const ended = page.url();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && url.href !== ended);
  await page.getByText('running').first().waitFor({ timeout: 30_000 });
  const next = new URL(page.url()).pathname.split('/').at(-1);
  const { items } = await home.call('GET', `/api/v1/tasks/${next}/jobs`);
  assert.equal(items.length, 1);
  await home.call('PATCH', `/api/v1/tasks/${next}`, { status: 'cancelled', mode: 'immediate' });
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('what is said is text, whatever it looks like', async () => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.hurt = false));
  await run(page, '<img src=x onerror="window.hurt = true"> <script>window.hurt = true</script>');
  await page.getByText('completed').first().waitFor({ timeout: 30_000 });
  assert.match(await page.getByRole('heading', { level: 1 }).innerText(), /<img src=x/);
  assert.equal(await page.evaluate(() => window.hurt), false);
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  assert.deepEqual(page.complaints, []);
  await context.close();
});
