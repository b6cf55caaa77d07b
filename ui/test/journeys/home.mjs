// A server of a test's own and a real browser on it. Nothing here waits for time; everything waits for what it wants to see.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const BINARY = process.env.MATSU_BIN ?? new URL('../../../target/debug/matsu', import.meta.url).pathname;
const CHROMIUM = process.env.MATSU_CHROMIUM ?? '/usr/bin/chromium';

export class Home {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'matsu-page-'));
    // A folder of its own: what agents run must not lie in it.
    this.data = join(this.folder, 'data');
    this.env = { PATH: process.env.PATH, HOME: this.folder };
  }

  async serve({ port = 0, args = [] } = {}) {
    const all = ['--data-dir', this.data, 'serve', '--json', '--test-jobs', '--port', String(port), ...args];
    this.process = spawn(BINARY, all, { env: this.env, stdio: ['ignore', 'pipe', process.env.MATSU_TEST_LOG ? 'inherit' : 'ignore'] });
    const said = await new Promise((resolve, reject) => {
      createInterface({ input: this.process.stdout }).once('line', resolve);
      this.process.once('error', reject);
      this.process.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    });
    this.address = JSON.parse(said).address;
    this.token = readFileSync(join(this.data, 'token'), 'utf8').trim();
    this.link = await this.freshLink();
    return this;
  }

  async end(signal = 'SIGTERM') {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill(signal);
    await ended;
  }

  async close() {
    // A run that is left alone without its folder starts a daemon, which then serves on the usual port.
    if (this.process) spawnSync(BINARY, ['--data-dir', this.data, 'shutdown', '--runs'], { env: this.env, stdio: 'ignore' });
    await this.end();
    // The supervisors of runs may still be putting away what theirs left.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  async call(method, path, body) {
    const answer = await fetch(this.address + path, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** A task of test jobs; its id. */
  async submit(jobs, kind = 'agent') {
    const made = await this.call('POST', '/test/tasks', { kind, jobs });
    return made.task.task_id;
  }

  /** Another link that works once. */
  freshLink() {
    return this.run('open', '--print', '--json').then(({ out }) => JSON.parse(out).link);
  }

  run(...args) {
    const child = spawn(BINARY, ['--data-dir', this.data, ...args], { env: this.env });
    return new Promise((resolve) => {
      let out = '';
      let err = '';
      child.stdout.on('data', (part) => (out += part));
      child.stderr.on('data', (part) => (err += part));
      child.once('close', (code) => resolve({ code, out, err }));
    });
  }
}

/** A telephone, held upright. */
export const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };

/** How far the page is wider than its window. */
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

export const sleep = (ms) => ({ kind: 'sleep', slot: 'agent_cli', input: { ms } });
export const noop = () => ({ kind: 'noop', slot: 'agent_cli' });

export function openBrowser() {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** A page that has signed in by the link, and fails the test when the browser complains about anything. */
export async function signedIn(home, browser, options = {}) {
  const context = await browser.newContext({ locale: 'en-GB', colorScheme: 'light', viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.complaints = complaints(page);
  await page.goto(home.link ?? (await home.freshLink()));
  home.link = null;
  await page.getByRole('heading', { level: 1, name: /Overview|概要|개요/ }).waitFor();
  return { context, page };
}

export function complaints(page) {
  const found = [];
  page.on('pageerror', (error) => found.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) found.push(message.text());
  });
  return found;
}

/** As [`axe`], in the light and in the dark. */
export async function axeBoth(page) {
  const found = {};
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    const violations = await axe(page);
    if (violations.length) found[colorScheme] = violations;
  }
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}

/** No violation of WCAG A or AA, nor of good practice. Injected past the policy, which stays as it is. */
export async function axe(page) {
  const source = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
  const client = await page.context().newCDPSession(page);
  const { frameTree } = await client.send('Page.getFrameTree');
  const { executionContextId } = await client.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
  const run = `${source}; axe.run(document, { resultTypes: ['violations'] }).then((report) => JSON.stringify(report.violations.map((found) => ({ id: found.id, help: found.help, nodes: found.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)) }))))`;
  const { result, exceptionDetails } = await client.send('Runtime.evaluate', { expression: run, contextId: executionContextId, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  await client.detach();
  return JSON.parse(result.value);
}
