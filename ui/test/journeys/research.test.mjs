// A question is asked on the page and answered from documents; its evidence is drawn; a login lets a search go on; a
// calibration is undone.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeBoth, Home, openBrowser, signedIn } from './home.mjs';
import { bringDocuments, settled, Web } from './scripted.mjs';

let browser;
let home;
let web;
before(async () => {
  browser = await openBrowser();
  web = await new Web().start();
  home = new Home();
  bringDocuments(home);
  Object.assign(home.env, { MATSU_RESEARCH_SEARXNG: `http://${web.host}`, MATSU_RESEARCH_ALLOW_HOSTS: web.host });
  await home.serve();
});
after(async () => {
  await browser.close();
  await home.close();
  web.close();
});

async function ask(page, question, searches) {
  await page.locator('nav').getByRole('link', { name: 'Research' }).click();
  await page.getByRole('textbox', { name: 'Question', exact: true }).fill(question);
  await page.getByRole('textbox', { name: /Searches/ }).fill(searches.join('\n'));
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByRole('heading', { level: 1, name: question }).waitFor();
}

const ended = (page) => page.getByRole('cell', { name: /satisfied|partial|exhausted/ });

test('research is started, a login lets it go on, and its evidence is drawn, without a reload', async () => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  await ask(page, 'Do heat pumps pay off?', ['heat pump payback time', 'heat pump noise decibels']);
  await page.getByRole('link', { name: /login waits/ }).click({ timeout: 60_000 });
  await page.getByRole('heading', { level: 2, name: '127.0.0.1 · login' }).waitFor();
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('checkbox', { name: 'Paste cookies' }).check();
  await page.getByRole('textbox', { name: /Cookies of this site/ }).fill('session=open-sesame');
  await page.getByRole('button', { name: 'Done for the whole domain' }).click();
  await page.getByText('Nothing waits for you.').waitFor();

  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Do heat pumps pay off?' }).waitFor();
  await page.getByRole('tab', { name: /Searches/ }).click();
  await ended(page).nth(1).waitFor({ timeout: 60_000 });
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('tab', { name: /Sources/ }).click();
  await page.getByRole('link', { name: /members/ }).first().waitFor();
  await page.getByRole('tab', { name: /Claims/ }).click();
  const claims = page.getByRole('list', { name: 'Claims' }).getByRole('button');
  await claims.first().waitFor({ timeout: 30_000 });
  const [total] = /\d+/.exec(await page.getByRole('tab', { name: /Claims/ }).innerText()) ?? [];
  assert.equal(await claims.count(), Number(total), 'all of them, however large the answer');
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('tab', { name: /Graph/ }).click();
  await page.locator('canvas').waitFor();
  await page.getByRole('button', { name: 'Everything' }).click();
  await page.waitForFunction(() => {
    const canvas = document.querySelector('canvas');
    return canvas && Number(canvas.dataset.placed) > 1 && canvas.dataset.placed === canvas.dataset.nodes;
  });
  assert.ok((await inks(page)) > 3, 'claims, fragments and domains have their colours');
  assert.deepEqual(await axeBoth(page), {});
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

/** How many colours cover more than a few points of the drawing. */
const inks = (page) => page.evaluate(() => {
  const canvas = document.querySelector('canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const colour = data.slice(at, at + 4).join();
    seen.set(colour, (seen.get(colour) ?? 0) + 1);
  }
  return [...seen.values()].filter((count) => count > 20).length;
});

test('a person corrects evidence, and the claim is scored again', async () => {
  const { context, page } = await signedIn(home, browser);
  await ask(page, 'Are heat pumps quiet?', ['heat pump decibels metres']);
  await page.getByRole('tab', { name: /Claims/ }).click();
  const claim = page.getByRole('article', { name: 'claim' });
  const select = claim.getByRole('combobox').first();
  await select.waitFor({ timeout: 60_000 });
  const figures = claim.locator('p.num').first();
  const before = await figures.innerText();
  await select.selectOption((await select.inputValue()) === 'supports' ? 'refutes' : 'supports');
  await page.getByRole('dialog').getByRole('button', { name: 'Correct' }).click();
  await page.waitForFunction((old) => document.querySelector('article p.num')?.textContent !== old, before);
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a question of two thousand characters is asked of a folder and an engine that are named', async () => {
  const { context, page } = await signedIn(home, browser);
  const folder = join(home.folder, 'named');
  mkdirSync(folder);
  writeFileSync(join(folder, 'a.md'), '# Notes\n\nThe pump of the named folder reaches forty decibels.\n');
  await page.locator('nav').getByRole('link', { name: 'Research' }).click();
  const question = `How loud is the pump of the named folder? ${'I would like to know. '.repeat(85)}`.trim();
  await page.getByRole('textbox', { name: 'Question', exact: true }).fill(question);
  await page.getByText('Where to search').click();
  await page.getByRole('textbox', { name: /Folders/ }).fill(folder);
  await page.getByRole('textbox', { name: /Engines/ }).fill('local');
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('button', { name: 'Start' }).click();
  const report = page.getByRole('article', { name: 'Report' });
  await report.getByText('reaches forty decibels').first().waitFor({ timeout: 60_000 });
  assert.doesNotMatch(await report.innerText(), /127\.0\.0\.1/, 'only the folder that was named was searched');
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a question is asked, its report is read, a citation is opened in its context, and the report is downloaded', async () => {
  const { context, page } = await signedIn(home, browser);
  await ask(page, 'How loud is a heat pump?', ['heat pump decibels metres']);
  const report = page.getByRole('article', { name: 'Report' });
  await report.getByRole('heading', { name: 'Answer' }).waitFor({ timeout: 60_000 });
  const cited = report.getByRole('button', { name: /^Citation 1:/ }).first();
  await cited.waitFor({ timeout: 60_000 });
  assert.match(await report.innerText(), /no model wrote this report/);
  assert.deepEqual(await axeBoth(page), {});
  await cited.click();
  const dialog = page.getByRole('dialog', { name: 'Citation in its context' });
  const marked = await dialog.locator('mark').first().innerText();
  const quote = await report.locator('ol blockquote').first().innerText();
  assert.ok(quote.includes(marked.replace(/\s+/g, ' ').trim()), `${quote} / ${marked}`);
  assert.deepEqual(await axeBoth(page), {});
  await dialog.getByRole('button', { name: 'Close' }).click();
  for (const [name, ending, part] of [
    ['Download Markdown', '.md', '## Answer'],
    ['Download HTML', '.html', '<!doctype html>'],
    ['Download BibTeX', '.bib', '@misc{'],
    ['Download CSL-JSON', '.json', '"URL"'],
  ]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
    assert.ok(download.suggestedFilename().endsWith(ending), download.suggestedFilename());
    assert.ok(readFileSync(await download.path(), 'utf8').includes(part), name);
  }
  assert.deepEqual(page.complaints, []);
  await context.close();
});

test('a calibration is rolled back', async () => {
  const home = new Home();
  bringDocuments(home);
  await home.serve();
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  const tool = (name, args) => home.call('POST', `/api/v1/tools/${name}`, args);
  const { task_id } = await tool('create_task', { query: 'Do heat pumps pay off?', config: { engines: ['local'] } });
  await tool('queue_searches', { task_id, queries: ['heat pump payback time', 'heat pump decibels'] });
  await settled(home, task_id);
  const { claims } = await tool('get_materials', { task_id, options: { limit: 50, detail: 'full' } });
  const edges = claims.flatMap((claim) => claim.evidence).map((evidence) => evidence.edge_id);
  assert.ok(edges.length >= 20, `${edges.length} edges`);
  const sides = claims.flatMap((claim) => claim.evidence).map((evidence) => (evidence.relation === 'neutral' ? 'supports' : 'neutral'));
  for (const [n, edge_id] of edges.slice(0, 20).entries()) await tool('feedback', { action: 'edge_correct', edge_id, correct_relation: sides[n] });

  await page.getByRole('link', { name: 'Calibration' }).click();
  const version = page.getByTestId('version');
  await version.filter({ hasText: /\d/ }).waitFor();
  const [from, other] = (await version.innerText()) === '2' ? ['2', '1'] : ['1', '2'];
  assert.deepEqual(await axeBoth(page), {});
  await page.getByRole('button', { name: `Roll back to ${other}` }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('worse on new data');
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
  await version.filter({ hasText: other }).waitFor();
  await page.getByRole('button', { name: `Roll back to ${from}` }).waitFor();
  const { stats } = await home.call('GET', '/api/v1/calibration');
  assert.equal(String(stats.sources.judge.version_in_force), other);
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
  await home.close();
});
