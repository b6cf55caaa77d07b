// Running an agent from the page: its log, its result, ending another. The agent is a program that says what it is told.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axe, Home, openBrowser, signedIn } from './home.mjs';

/** Speaks as Codex does on its stream. A prompt with `forever` does not end by itself. */
const CODEX = `#!/bin/sh
case "$*" in *--version*) echo "codex-cli 0.166.0"; exit 0;; esac
prompt=$(cat)
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"cat README.md","aggregated_output":"","exit_code":0,"status":"completed"}}'
case "$prompt" in *forever*) sleep 600;; esac
echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"It waits, so that you need not."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":41,"cached_input_tokens":0,"output_tokens":9}}'
`;

let browser;
let home;
before(async () => {
  browser = await openBrowser();
  home = new Home();
  const bin = join(home.folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'codex'), CODEX);
  chmodSync(join(bin, 'codex'), 0o755);
  home.env.PATH = `${bin}:${home.env.PATH}`;
  home.env.OPENAI_API_KEY = 'none';
  await home.serve();
});
after(async () => {
  await browser.close();
  await home.close();
});

async function run(page, prompt) {
  await page.goto(`${home.address}/agents`);
  const card = page.locator('li.card').filter({ has: page.getByRole('heading', { name: 'codex' }) });
  await card.getByRole('button', { name: 'Run' }).click();
  await page.getByRole('textbox', { name: 'Prompt' }).fill(prompt);
  await page.locator('form').getByRole('button', { name: 'Run' }).click();
  await page.getByRole('tab', { name: 'Log' }).waitFor();
}

test('an agent is run, its log and its result are read, and another is cancelled, without a reload', async () => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await page.getByRole('link', { name: 'Agents' }).click();
  await run(page, 'Summarise README.md');
  await page.getByText('completed').first().waitFor({ timeout: 30_000 });
  await page.getByRole('tab', { name: 'Log' }).click();
  await page.getByRole('region', { name: 'Log' }).getByText('cat README.md').waitFor();
  await page.getByRole('tab', { name: 'Result' }).click();
  await page.getByText('It waits, so that you need not.').waitFor();
  assert.deepEqual(await axe(page), []);

  await run(page, 'Go on forever');
  await page.getByText('running').first().waitFor();
  await page.getByRole('button', { name: 'Cancel at once' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('cancelled').first().waitFor();
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('what an agent says is text, whatever it looks like', async () => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.hurt = false));
  await run(page, '<img src=x onerror="window.hurt = true"> <script>window.hurt = true</script>');
  await page.getByText('completed').first().waitFor({ timeout: 30_000 });
  const title = await page.getByRole('heading', { level: 1 }).innerText();
  assert.match(title, /<img src=x/);
  assert.equal(await page.evaluate(() => window.hurt), false);
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  assert.deepEqual(page.complaints, []);
  await context.close();
});
