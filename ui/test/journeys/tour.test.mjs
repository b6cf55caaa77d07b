// A newcomer's first minutes, as the README tells them: its commands are typed as they stand there, its steps on the page
// are taken in a real browser, and the time is measured. Only the build is left out, which `make run` begins with.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { complaints, openBrowser } from './home.mjs';

const ROOT = new URL('../../../', import.meta.url).pathname;
const BINARY = process.env.MATSU_BIN ?? join(ROOT, 'target/debug/matsu');
const FIVE_MINUTES = 300;

/** The commands below a heading of the README, without what is said about them. */
function commands(heading) {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const chapter = text.split(/^## /m).find((part) => part.startsWith(heading));
  assert.ok(chapter, heading);
  const blocks = [...chapter.matchAll(/^```sh\n([^]*?)^```/gm)].map((match) => match[1]);
  return blocks.join('').split('\n').map((line) => line.split(' #')[0].trim()).filter((line) => line && !line.startsWith('#'));
}

/** A user with `matsu` in their path and one client installed. */
class Newcomer {
  constructor() {
    this.home = mkdtempSync(join(tmpdir(), 'matsu-tour-'));
    mkdirSync(join(this.home, 'bin'));
    symlinkSync(BINARY, join(this.home, 'bin/matsu'));
    writeFileSync(join(this.home, '.claude.json'), '{}\n');
    this.env = { HOME: this.home, PATH: `${join(this.home, 'bin')}:${process.env.PATH}` };
  }

  /** What `make run` does once it has built; any free port, for 7878 may be taken. */
  async serve() {
    this.server = spawn('matsu', ['serve', '--json', '--port', '0'], { env: this.env, cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] });
    const said = await new Promise((resolve, reject) => {
      createInterface({ input: this.server.stdout }).once('line', resolve);
      this.server.once('error', reject);
      this.server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    });
    return JSON.parse(said);
  }

  /** A line, as a shell takes it; what is asked at a terminal is said in advance, and no desktop is there to open a link. */
  async type(line, address) {
    let typed = line.replace('127.0.0.1:7878', new URL(address).host);
    if (/^matsu connect(?!.*--undo)/.test(line)) typed += ' --yes';
    if (line === 'matsu open') typed += ' --print';
    const child = spawn('sh', ['-c', typed], { env: this.env, cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    child.stdout.on('data', (part) => (out += part));
    child.stderr.on('data', (part) => (out += part));
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.equal(code, 0, `${line}: ${out}`);
    return out;
  }

  async close() {
    const ended = new Promise((resolve) => this.server.once('exit', resolve));
    this.server.kill();
    await ended;
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** What the README says about the page: `g t`, `/`, `Enter`, the graph, `Ctrl K`, `?`. */
async function lookAround(page) {
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('unread results kept');
  await page.getByRole('status').filter({ hasText: 'showing 1 of' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'How long are unread results kept?' }).waitFor();
  await page.getByRole('tab', { name: /Graph/ }).click();
  await page.locator('canvas[data-settled="true"]').waitFor({ timeout: 60_000 });
  assert.ok(Number(await page.locator('canvas').getAttribute('data-nodes')) > 1, 'its evidence is drawn');
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').or(page.getByRole('dialog').getByRole('textbox')).first().fill('doctor');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Doctor' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('Ctrl').first().waitFor();
}

test('the first minute and the tour of the README take less than five minutes', async () => {
  const newcomer = new Newcomer();
  const browser = await openBrowser();
  const began = Date.now();
  const seconds = () => (Date.now() - began) / 1000;
  const { address } = await newcomer.serve();
  // The link itself is printed on a terminal only.
  const link = (await newcomer.type('matsu open', address)).match(/https?:\/\/\S+/)[0];
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 860 } });
  const page = await context.newPage();
  const found = complaints(page);
  await page.goto(link);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  const signedIn = seconds();
  const first = commands('The first minute').filter((line) => !line.startsWith('make '));
  const tour = commands('A tour in five minutes');
  assert.ok(first.length >= 4 && tour.length >= 10, `${first.length} and ${tour.length} commands`);
  for (const line of first) await newcomer.type(line, address);
  const firstMinute = seconds();
  for (const line of tour) await newcomer.type(line, address);
  await lookAround(page);
  const all = seconds();
  console.log(`the link was open after ${signedIn.toFixed(1)} s, the first minute over after ${firstMinute.toFixed(1)} s, the tour (${first.length + tour.length} commands and the page) after ${all.toFixed(1)} s`);
  assert.ok(firstMinute < 60, `${firstMinute} s`);
  assert.ok(all < FIVE_MINUTES, `${all} s`);
  assert.deepEqual(found, []);
  await browser.close();
  await newcomer.close();
});
