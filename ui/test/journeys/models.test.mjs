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
  writeFileSync(join(folder, 'config.toml'), `[providers.echo]\nwire = "scripted"\nscript = "${join(folder, 'script.json')}"\n[providers.other]\nwire = "scripted"\nscript = "${join(folder, 'script.json')}"\n[providers.broken]\nwire = "openai"\nmodel = "none"\nbase_url = "http://127.0.0.1:1"\n`);
  await home.serve();
});
after(async () => {
  await browser.close();
  await home.close();
});

async function begin(page, ...models) {
  await page.locator('nav').getByRole('link', { name: 'Chat' }).click();
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

/** A picture of one pixel. */
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

test('an image is attached, sent and shown; a model that takes none is named', async () => {
  const { context, page } = await signedIn(home, browser);
  await begin(page, 'echo');
  const field = page.getByRole('textbox', { name: 'Message' });
  const picker = page.locator('input[type=file]');
  await picker.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('no image') });
  await page.getByText('notes.txt is not an image that this browser can read').waitFor();
  await picker.setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: PNG });
  await page.getByRole('img', { name: 'dot.png' }).waitFor();
  assert.deepEqual(await axeBoth(page), {});
  await field.fill('@echo what is this?');
  await field.press('Enter');
  const log = page.getByRole('log');
  await log.getByText('You said: @echo what is this?').waitFor();
  const shown = log.getByRole('img', { name: 'Image, image/png, 1 kB' });
  await shown.waitFor();
  assert.equal(await shown.evaluate((image) => image.naturalWidth), 1);
  await log.getByText('echo does not see 1 image').waitFor();
  assert.equal(await page.getByRole('img', { name: 'dot.png' }).count(), 0, 'it went with the line');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a model uses a tool and answers; a line without a mention is a note', async () => {
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

/** The numbers of an answer that counts, as far as it has come. */
async function counted(answer) {
  const text = await answer.locator('p.text').innerText();
  return text.trim().split(/\.\s*/).filter(Boolean).map(Number);
}

/** What the page asks the server for about chats, from now on. */
function asked(page) {
  const found = { streams: 0, reads: 0 };
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (/\/chats\/[^/]+\/stream$/.test(pathname)) found.streams++;
    if (/\/chats\/[^/]+\/messages$/.test(pathname) && request.method() === 'GET') found.reads++;
  });
  return found;
}

test('a reload in mid-answer loses nothing, and the answer can be stopped', async () => {
  const { context, page } = await signedIn(home, browser);
  await begin(page, 'echo');
  const requests = asked(page);
  await say(page, '@echo count');
  const answer = page.getByRole('log').getByRole('article').last();
  await answer.getByText(/^0\. 1\. 2\. /).waitFor();
  assert.ok(requests.streams > 0 && requests.reads <= 1, `read once at most, then every word by the stream: ${JSON.stringify(requests)}`);
  const seen = (await counted(answer)).length;
  await page.reload();
  await answer.getByText(/^0\. 1\. 2\. /).waitFor();
  assert.ok((await counted(answer)).length >= seen, 'what had come is there at once');
  await answer.getByText(/^0\. 1\. 2\. .* 1\d\. /).waitFor();
  await page.getByRole('button', { name: 'Stop answering' }).click();
  await page.waitForFunction(() => !document.querySelector('[role="log"] .cursor'));
  const numbers = await counted(answer);
  assert.deepEqual(numbers, numbers.map((_, n) => n), 'each once, in order');
  assert.ok(numbers.length > 10 && numbers.length < 200, String(numbers));
  assert.ok(requests.reads <= 2, `${requests.reads} reads besides the stream, one for each time the page was opened`);
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('without the stream the page asks, and goes back to the stream when it can', async () => {
  const { context, page } = await signedIn(home, browser);
  await begin(page, 'echo');
  await page.route('**/stream?*', (route) => route.abort());
  const requests = asked(page);
  await say(page, '@echo count');
  const answer = page.getByRole('log').getByRole('article').last();
  await answer.getByText(/^0\. 1\. 2\. /).waitFor();
  assert.ok(requests.reads > 0, 'it was asked for');
  await page.unroute('**/stream?*');
  const streamed = page.waitForResponse((response) => response.url().includes('/stream?') && response.ok());
  await streamed;
  const { reads } = requests;
  const [last] = (await counted(answer)).slice(-1);
  await answer.getByText(new RegExp(` ${last + 5}\\. `)).waitFor();
  assert.ok(requests.reads <= reads + 1, 'and no more is asked');
  await page.getByRole('button', { name: 'Stop answering' }).click();
  await page.waitForFunction(() => !document.querySelector('[role="log"] .cursor'));
  const numbers = await counted(answer);
  assert.deepEqual(numbers, numbers.map((_, n) => n), 'each once, in order');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('ten tabs that listen to one answer leave the browser a connection', async () => {
  const { context, page } = await signedIn(home, browser);
  await begin(page, 'echo');
  await say(page, '@echo count');
  await page.getByRole('log').getByText(/^0\. 1\. 2\. /).waitFor();
  const tabs = [page];
  for (let n = 1; n < 10; n++) {
    const tab = await context.newPage();
    await tab.goto(page.url());
    tabs.push(tab);
  }
  await Promise.all(tabs.map((tab) => tab.getByRole('log').getByText(/ 5\. /).waitFor()));
  await page.getByRole('button', { name: 'Stop answering' }).click();
  await Promise.all(tabs.map((tab) => tab.waitForFunction(() => document.querySelector('[role="log"] article + article') && !document.querySelector('[role="log"] .cursor'))));
  await context.close();
});

test('a model that fails says why in its place', async () => {
  const { context, page } = await signedIn(home, browser);
  await begin(page, 'echo', 'broken');
  await say(page, '@all hello');
  await page.getByRole('log').getByText('You said: @all hello').waitFor();
  await page.getByRole('log').getByText(/^broken: /).waitFor();
  assert.deepEqual(await axeBoth(page), {});
  assert.deepEqual(page.complaints, []);
  await context.close();
});
