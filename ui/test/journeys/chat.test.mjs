// Agents that come over the tools, as real ones do: one talks with a person, one stops when a person says so.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, signedIn } from './home.mjs';
import { Agent } from './scripted.mjs';

let browser;
let home;
before(async () => {
  browser = await openBrowser();
  home = await new Home().serve();
});
after(async () => {
  await browser.close();
  await home.close();
});

test('a person and an agent talk on the page, without a reload, and a reload loses nothing', async () => {
  const agent = await new Agent(home, 'worker-01').register();
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await page.locator('nav').getByRole('link', { name: 'Chat' }).click();
  await page.getByRole('combobox', { name: 'With an agent' }).selectOption('worker-01');
  await page.getByRole('button', { name: 'Begin' }).first().click();
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill('Hello <b>there</b>');
  await field.press('Enter');
  await page.getByRole('log').getByText('Hello <b>there</b>', { exact: true }).waitFor();
  const ended = agent.chat();
  await page.getByRole('log').getByText('You said: Hello <b>there</b>').waitFor();
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(await axeBoth(page), {});

  await field.fill('not sent yet');
  await page.reload();
  await page.getByRole('log').getByText('You said: Hello').waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'not sent yet', 'an unsent line survives');
  await page.getByRole('button', { name: 'End chat' }).click();
  assert.equal((await ended).action, 'end_session');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a person blocks a task, and the agent that works on it stops', async () => {
  const agent = await new Agent(home, 'worker-02').register();
  const { task_id } = await home.call('POST', '/api/v1/tasks', { kind: 'agent', agent_id: 'worker-02', message: 'Count to three.' });
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await page.locator(`a[href="/tasks/${task_id}"]`).first().click();
  const stopped = agent.work();
  await Promise.race([agent.begun, stopped]);
  await page.getByText('running').first().waitFor();
  await page.getByRole('button', { name: 'Block' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('not like that');
  const began = Date.now();
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click();
  const received = await stopped;
  assert.ok(Date.now() - began < 2_000, 'within two seconds of its next call');
  assert.deepEqual(received.map((notice) => [notice.type, notice.action, notice.task_id]), [['interrupt', 'block', task_id]]);
  await page.getByText('blocked').first().waitFor();
  const row = page.getByRole('row').filter({ hasText: 'worker-02' });
  await row.getByRole('cell').last().filter({ hasText: /\d\d:\d\d:\d\d/ }).waitFor();
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('link', { name: 'Notifications' }).click();
  await page.getByRole('row').filter({ hasText: 'worker-02' }).getByText('interrupt · block').waitFor();
  assert.deepEqual(await axeBoth(page), {});
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
});
