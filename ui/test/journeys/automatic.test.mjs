// What starts by itself, what runs have cost, and branches that come together: each made and ended on the page.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, overflow, PHONE, signedIn } from './home.mjs';
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

const cardOf = (page, name) => page.locator('li.card').filter({ has: page.getByRole('heading', { name, exact: true }) });

async function removed(page, name) {
  await cardOf(page, name).getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await cardOf(page, name).waitFor({ state: 'detached' });
}

for (const [size, options] of [['a desktop', {}], ['a telephone', PHONE]]) {
  test(`a schedule is added, refused in words, paused and removed, on ${size}`, async () => {
    const { context, page } = await signedIn(home, browser, options);
    await page.getByRole('link', { name: 'Schedules' }).click();
    const form = page.getByRole('form', { name: 'Add a schedule' });
    await form.getByRole('textbox', { name: 'Name' }).fill('morning');
    await form.getByRole('textbox', { name: 'When' }).fill('at seven');
    await form.getByRole('combobox', { name: 'Agent', exact: true }).selectOption('scribe');
    await form.getByRole('textbox', { name: 'Prompt' }).fill('Say what is new');
    await form.getByRole('button', { name: 'Add' }).click();
    await form.getByRole('alert').filter({ hasText: 'at seven' }).waitFor();
    await form.getByRole('textbox', { name: 'When' }).fill('0 7 * * 1-5');
    await form.getByRole('button', { name: 'Add' }).click();
    const card = cardOf(page, 'morning');
    await card.getByText('0 7 * * 1-5').waitFor();
    await card.getByText('run scribe (read-only): Say what is new').waitFor();
    await card.getByText('History').click();
    await card.getByText('It has not fired yet.').waitFor();
    assert.ok((await overflow(page)) <= 0, 'nothing is wider than the window');
    assert.deepEqual(await axeBoth(page), {});
    await card.getByRole('button', { name: 'Pause' }).click();
    await card.getByRole('button', { name: 'Resume' }).waitFor();
    assert.notEqual((await home.call('GET', '/api/v1/schedules')).items[0].paused, null);
    await card.getByRole('button', { name: 'Resume' }).click();
    await card.getByText('next:').waitFor();
    await removed(page, 'morning');
    assert.deepEqual((await home.call('GET', '/api/v1/schedules')).items, []);
    assert.deepEqual(page.complaints, []);
    await context.close();
  });

  test(`a webhook is added, takes a signed delivery, is paused and removed, on ${size}`, async () => {
    const { context, page } = await signedIn(home, browser, options);
    await page.getByRole('link', { name: 'Webhooks' }).click();
    const form = page.getByRole('form', { name: 'Add a webhook' });
    await form.getByRole('textbox', { name: 'Name' }).fill('triage');
    await form.getByRole('combobox', { name: 'Agent', exact: true }).selectOption('scribe');
    await form.getByRole('textbox', { name: 'Instructions for the agent' }).fill('Judge {{issue.title}}');
    await form.getByRole('button', { name: 'Add' }).click();
    const shown = page.getByRole('status').filter({ hasText: 'shown only once' });
    const secret = await shown.locator('code').innerText();
    const card = cardOf(page, 'triage');
    const address = await card.locator('code').first().innerText();
    const body = JSON.stringify({ issue: { title: 'It hangs' } });
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    const sent = await fetch(address, { method: 'POST', body, headers: { 'Content-Type': 'application/json', 'X-GitHub-Event': 'issues', 'X-GitHub-Delivery': `one-${size.length}`, 'X-Hub-Signature-256': signature } });
    assert.equal(sent.status, 202, await sent.text());
    await card.getByText('History').click();
    await card.getByRole('row').getByText(/waiting|started/).waitFor();
    assert.ok((await overflow(page)) <= 0, 'nothing is wider than the window');
    assert.deepEqual(await axeBoth(page), {});
    await card.getByRole('button', { name: 'Pause' }).click();
    await card.getByRole('button', { name: 'Resume' }).waitFor();
    assert.notEqual((await home.call('GET', '/api/v1/webhooks')).items[0].paused, null);
    await removed(page, 'triage');
    assert.equal(await page.getByText(secret).count(), 0, 'the secret goes with its webhook');
    assert.deepEqual(page.complaints, []);
    await context.close();
  });
}

test('the changes of two tasks are merged into one branch, and usage counts their runs', async () => {
  const use = (message) => home.call('POST', '/api/v1/tools/use_agent', { cli_name: 'scribe', mode: 'workspace-write', message, timeout: 60 });
  const titles = ['Write a greeting', 'Write a farewell'];
  for (const title of titles) assert.equal((await use(title)).status, 'completed', title);
  const { context, page } = await signedIn(home, browser);
  await page.getByRole('link', { name: 'Tasks' }).click();
  for (const title of titles) await page.getByRole('row').filter({ hasText: title }).getByRole('checkbox').check();
  await page.getByRole('toolbar').getByRole('button', { name: 'Merge' }).click();
  const form = page.getByRole('form', { name: 'Merge' });
  await form.getByRole('textbox', { name: 'Into branch' }).fill('together');
  await form.getByRole('button', { name: 'Merge' }).click();
  const merge = page.getByRole('region', { name: 'Merge' });
  for (const title of titles) await merge.getByRole('row').filter({ hasText: title }).getByText('merged').waitFor({ timeout: 60_000 });
  const files = execFileSync('git', ['ls-tree', '-r', '--name-only', 'together'], { cwd: repository }).toString();
  assert.match(files, /bin\/greet\.sh/);
  assert.match(files, /farewell\.txt/);
  assert.deepEqual(await axeBoth(page), {});

  await page.getByRole('link', { name: 'Usage' }).click();
  const row = page.getByRole('table', { name: 'Usage' }).getByRole('row').filter({ hasText: 'scribe' });
  await row.first().waitFor();
  await page.getByRole('button', { name: 'Agent' }).click();
  await row.waitFor({ state: 'detached' });
  await page.getByRole('rowheader', { name: 'Total' }).waitFor();
  assert.deepEqual(page.complaints, []);
  await context.close();
});
