// A person reviews the change of a run: reads it with its receipt, comments on two lines, sends it back, and applies the
// second round. The agent is a program of the test's own; it mends only lines that were commented on in the same conversation.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, overflow, PHONE, signedIn } from './home.mjs';
import { hireScribe } from './scripted.mjs';

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

const withScribe = (body) => async () => {
  const home = new Home();
  const repository = hireScribe(home);
  await home.serve();
  try {
    await body(home, repository);
  } finally {
    await home.close();
  }
};

const WISH = { cli_name: 'scribe', mode: 'workspace-write', run_async: true };
const review = (page) => page.getByRole('tab', { name: 'Review' }).click();
const file = (page, path) => page.getByRole('group').filter({ has: page.locator('summary', { hasText: path }) });

async function comment(page, line, text) {
  await file(page, 'bin/greet.sh').getByRole('button', { name: `Comment on line ${line}`, exact: true }).click();
  await page.getByRole('textbox', { name: 'Comment', exact: true }).fill(text);
  await page.getByRole('button', { name: 'Keep comment' }).click();
}

for (const [size, options] of [['a desktop', {}], ['a telephone', PHONE]]) {
  test(`a change is reviewed, sent back with comments on two lines, and its second round applied, on ${size}`, withScribe(async (home, repository) => {
    const { context, page } = await signedIn(home, browser, options);
    await page.evaluate(() => (window.untouched = true));
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('combobox', { name: 'Agent', exact: true }).selectOption('scribe');
    await page.getByRole('combobox', { name: 'Mode' }).selectOption('workspace-write');
    await page.getByRole('textbox', { name: 'Prompt' }).fill('Write a greeting');
    await page.getByText('More', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Check' }).fill('sh bin/greet.sh you');
    await page.locator('form').getByRole('button', { name: 'Run' }).click();
    await page.getByText('completed').first().waitFor({ timeout: 60_000 });
    const first = page.url();

    await review(page);
    const receipt = page.getByRole('region', { name: 'Receipt' });
    await receipt.getByText('The check passed').waitFor();
    await receipt.getByText('sh bin/greet.sh you').waitFor();
    await receipt.getByText('exit code 0').waitFor();
    await file(page, 'README.md').getByRole('row').filter({ hasText: 'Draft.' }).waitFor();
    await file(page, 'bin/greet.sh').locator('[data-token="comment"]', { hasText: '# Says hello.' }).waitFor();
    await comment(page, 4, 'Spell hello right.');
    await comment(page, 5, 'And bye.');
    assert.ok((await overflow(page)) <= 0, 'nothing is wider than the window');
    assert.deepEqual(await axeBoth(page), {});

    // What was written is there after a reload.
    await page.reload();
    await file(page, 'bin/greet.sh').getByText('Spell hello right.').waitFor();
    await page.evaluate(() => (window.untouched = true));
    await page.getByRole('button', { name: 'Send back with 2 comments' }).click();
    await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && !first.includes(url.pathname));
    await page.getByText('completed').first().waitFor({ timeout: 60_000 });

    await review(page);
    await file(page, 'bin/greet.sh').getByRole('row').filter({ hasText: 'hello $name' }).waitFor();
    await receipt.getByText('The check passed').waitFor();
    assert.ok(!existsSync(join(repository, 'bin/greet.sh')), 'nothing is in the tree before it is applied');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
    await page.getByText('The changes are in your tree.').waitFor();
    const greet = readFileSync(join(repository, 'bin/greet.sh'), 'utf8');
    assert.match(greet, /echo "hello \$name"\necho "bye"/);
    await page.getByRole('button', { name: 'Take back' }).waitFor();

    await page.getByRole('link', { name: 'Previous round' }).click();
    await page.getByText('sent back').first().waitFor();
    await page.getByRole('link', { name: 'Next round' }).waitFor();
    await page.getByRole('link', { name: 'Tasks' }).click();
    await page.getByRole('row').filter({ hasText: 'sent back' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'applied' }).waitFor();
    assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
    assert.deepEqual(page.complaints, []);
    await context.close();
  }));
}

test('a failed check shows its output, and a change is discarded, applied all the same, and taken back', withScribe(async (home, repository) => {
  const { task_id: task } = await home.call('POST', '/api/v1/tools/use_agent', { ...WISH, message: 'Write a greeting', check: 'echo no such word; exit 4' });
  const { context, page } = await signedIn(home, browser);
  await page.goto(`${home.address}/tasks/${task}?tab=review`);
  const receipt = page.getByRole('region', { name: 'Receipt' });
  await receipt.getByText('The check failed').waitFor({ timeout: 60_000 });
  await receipt.getByText('exit code 4').first().waitFor();
  await receipt.locator('pre').getByText('no such word').waitFor();
  const decide = async (name) => {
    await page.getByRole('button', { name }).click();
    await page.getByRole('dialog').getByRole('button', { name }).click();
  };
  await decide('Discard');
  await page.getByText('The changes were discarded.').waitFor();
  await page.getByText('discarded', { exact: true }).waitFor();
  await decide('Apply');
  await page.getByRole('button', { name: 'Take back' }).waitFor();
  assert.equal(readFileSync(join(repository, 'README.md'), 'utf8'), '# A project\nDraft.\n');
  await decide('Take back');
  await page.getByText('The changes were removed from your tree.').waitFor();
  assert.equal(readFileSync(join(repository, 'README.md'), 'utf8'), '# A project\n');
  assert.deepEqual(await axeBoth(page), {});
  assert.deepEqual(page.complaints, []);
  await context.close();
}));

test('a question is answered on a telephone, from the inbox, by a tap and in words', withScribe(async (home) => {
  const ask = (message) => home.call('POST', '/api/v1/tools/use_agent', { ...WISH, message });
  const [{ task_id: tapped }, { task_id: written }] = [await ask('Write a note about a long subject that needs more space than a telephone has in one line'), await ask('Write another note')];
  const { context, page } = await signedIn(home, browser, PHONE);
  await page.getByRole('link', { name: 'Inbox' }).first().tap();
  const card = (id) => page.locator('li.card').filter({ has: page.locator(`a[href="/tasks/${id}"]`) });
  for (const id of [tapped, written]) await card(id).getByText('May I write notes.txt?').waitFor({ timeout: 60_000 });
  assert.ok((await overflow(page)) <= 0, 'nothing is wider than the window');
  assert.ok(await card(tapped).getByRole('link').evaluate((link) => link.scrollWidth <= link.clientWidth), 'the title is there whole');
  assert.deepEqual(await axeBoth(page), {});
  await card(written).getByRole('textbox', { name: 'Reply in your own words' }).fill('Not today.');
  await card(written).getByRole('button', { name: 'Answer' }).tap();
  await card(written).getByText('May I write notes.txt?').waitFor({ state: 'detached', timeout: 60_000 });
  await card(tapped).getByRole('button', { name: 'allow' }).tap();
  await card(tapped).getByText('May I write notes.txt?').waitFor({ state: 'detached', timeout: 60_000 });

  // The answers have reached the agents: one has written, the other has not.
  for (const [id, shown] of [[tapped, page.getByRole('row').filter({ hasText: 'waiting is cheap' })], [written, page.getByText('This run changed no files')]]) {
    await page.goto(`${home.address}/tasks/${id}?tab=review`);
    await page.getByText('completed').first().waitFor({ timeout: 60_000 });
    await shown.waitFor();
  }
  assert.deepEqual(page.complaints, []);
  await context.close();
}));
