// A chat with an agent that is not there yet: the message calls it, and its last words are the answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, signedIn } from './home.mjs';
import { hireScribe } from './scripted.mjs';

let browser;
let home;
before(async () => {
  browser = await openBrowser();
  home = new Home();
  hireScribe(home);
  await home.serve();
});
after(async () => {
  await browser.close();
  await home.close();
});

test('an agent that Matsu starts answers in a chat', async () => {
  await home.call('POST', '/api/v1/agents', { id: 'writer', name: 'writer', definition: 'scribe' });
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await page.locator('nav').getByRole('link', { name: 'Chat' }).click();
  await page.getByRole('combobox', { name: 'With an agent' }).selectOption('writer');
  await page.getByRole('button', { name: 'Begin' }).first().click();
  const field = page.getByRole('textbox', { name: 'Message' });
  for (let turn = 0; turn < 2; turn++) {
    await field.fill(`What do you do? (${turn})`);
    await field.press('Enter');
    await page.getByRole('log').getByText('It waits, so that you need not.').nth(turn).waitFor({ timeout: 60_000 });
  }
  assert.deepEqual(await axeBoth(page), {});
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('an agent that asks in a chat is answered there', async () => {
  await home.call('POST', '/api/v1/agents', { id: 'careful', name: 'careful', definition: 'scribe' });
  const { chat_id } = await home.call('POST', '/api/v1/chats', { agent_id: 'careful' });
  const { context, page } = await signedIn(home, browser);
  await page.goto(`${home.address}/chat/${chat_id}`);
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill('Take a note.');
  await field.press('Enter');
  const question = page.getByRole('region', { name: 'Question' });
  await question.getByText('May I write notes.txt?').waitFor({ timeout: 60_000 });
  assert.deepEqual(await axeBoth(page), {});
  await question.getByRole('button', { name: 'deny' }).click();
  await page.getByRole('log').getByText('It waits, so that you need not.').waitFor({ timeout: 60_000 });
  await question.waitFor({ state: 'detached' });
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('an agent that asks in a chat is answered from the inbox, which counts it', async () => {
  await home.call('POST', '/api/v1/agents', { id: 'polite', name: 'polite', definition: 'scribe' });
  const { chat_id } = await home.call('POST', '/api/v1/chats', { agent_id: 'polite' });
  const { context, page } = await signedIn(home, browser);
  await home.call('POST', `/api/v1/chats/${chat_id}/messages`, { content: 'Take a note.' });
  await page.getByRole('link', { name: 'Inbox 1' }).first().click({ timeout: 60_000 });
  const card = page.locator('li.card').filter({ has: page.locator(`a[href="/chat/${chat_id}"]`) });
  await card.getByText('May I write notes.txt?').waitFor();
  assert.deepEqual(await axeBoth(page), {});
  await card.getByRole('button', { name: 'deny' }).click();
  await card.waitFor({ state: 'detached', timeout: 60_000 });
  await page.goto(`${home.address}/chat/${chat_id}`);
  await page.getByRole('log').getByText('It waits, so that you need not.').waitFor({ timeout: 60_000 });
  assert.deepEqual(page.complaints, []);
  await context.close();
});
