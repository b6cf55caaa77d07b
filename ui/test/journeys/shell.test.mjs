// Signing in, watching work without a reload, steering it, and what must not happen.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe, complaints, Home, noop, openBrowser, signedIn, sleep } from './home.mjs';

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

const withHome = (body) => async () => {
  const home = await new Home().serve();
  try {
    await body(home);
  } finally {
    await home.close();
  }
};

test('a link signs in once; used again it says so', withHome(async (home) => {
  const link = home.link;
  const { context, page } = await signedIn(home, browser);
  assert.equal(new URL(page.url()).hash, '', 'the code is out of the address');
  const other = await browser.newContext();
  const second = await other.newPage();
  await second.goto(link);
  await second.getByRole('alert').filter({ hasText: 'used before' }).waitFor();
  assert.equal(await second.getByText('Overview').count(), 0, 'nothing of the work shows');
  await other.close();
  assert.deepEqual(page.complaints, []);
  await context.close();
}));

test('lists without work lead to the first example, research and chat', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  for (const path of ['/', '/tasks', '/jobs']) {
    await page.goto(`${home.address}${path}`);
    await page.getByText('matsu demo --keep').waitFor();
    for (const [name, to] of [['Research a question', '/research'], ['Ask in a chat', '/chat']]) {
      assert.equal(await page.getByRole('link', { name }).getAttribute('href'), to, path);
    }
  }
  await page.getByRole('link', { name: 'Research a question' }).click();
  await page.getByRole('heading', { level: 1, name: 'Research' }).waitFor();
  assert.deepEqual(page.complaints, []);
  await context.close();
}));

test('work appears, runs and ends on the page without a reload', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.untouched = true));
  const id = await home.submit([sleep(600), noop()]);
  const row = page.getByRole('row').filter({ has: page.locator(`a[href="/tasks/${id}"]`) });
  await row.getByText('running').waitFor();
  await row.getByText('completed').waitFor();
  await row.getByRole('link').click();
  await page.getByRole('heading', { level: 1, name: 'test jobs' }).waitFor();
  await page.getByRole('tab', { name: 'History' }).click();
  await page.getByRole('cell', { name: 'completed' }).first().waitFor();
  assert.equal(await page.evaluate(() => window.untouched), true, 'no reload');
  assert.deepEqual(page.complaints, []);
  await context.close();
}));

test('a task is blocked, resumed and cancelled from its page', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  const id = await home.submit([sleep(60_000), sleep(60_000)]);
  await page.goto(`${home.address}/tasks/${id}`);
  await page.getByText('running').first().waitFor();
  await page.getByRole('button', { name: 'Block' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('not now');
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click();
  await page.getByText('blocked').first().waitFor();
  assert.equal((await home.call('GET', `/api/v1/tasks/${id}`)).status, 'blocked');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.getByRole('button', { name: 'Cancel at once' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('cancelled').first().waitFor();
  await context.close();
}));

test('many are cancelled at once, from the keyboard', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  for (let n = 0; n < 3; n++) await home.submit([sleep(60_000)]);
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
  await page.getByRole('row').nth(2).waitFor();
  for (let n = 0; n < 3; n++) {
    await page.keyboard.press('j');
    await page.keyboard.press('x');
  }
  await page.getByRole('toolbar').getByText('3 selected').waitFor();
  await page.keyboard.press('c');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('3 tasks').waitFor();
  assert.equal(await dialog.getByRole('button', { name: 'Keep as it is' }).evaluate((button) => button === document.activeElement), true, 'the safe answer has the focus');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Done: 3').waitFor();
  await page.getByRole('row').filter({ hasText: 'cancelled' }).nth(2).waitFor();
  await context.close();
}));

test('a server that is killed in mid-stream is found again, and nothing is lost or doubled', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
  const first = await home.submit([noop()]);
  await page.locator(`a[href="/tasks/${first}"]`).first().waitFor();
  const port = new URL(home.address).port;
  await home.end('SIGKILL');
  await page.getByRole('status').filter({ hasText: /offline|connecting/ }).waitFor();
  await home.serve({ port });
  const second = await home.submit([noop()]);
  await page.getByRole('status').filter({ hasText: 'live' }).waitFor({ timeout: 60_000 });
  const row = page.getByRole('row').filter({ has: page.locator(`a[href="/tasks/${second}"]`) });
  await row.getByText('completed').waitFor();
  assert.equal(await page.getByRole('row').count(), 2, 'each task once');
  await context.close();
}));

test('a page that cannot be fetched is not shown under the name of another, and comes when the server is back', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  await page.getByRole('link', { name: 'Tasks' }).click();
  await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
  const port = new URL(home.address).port;
  await home.end('SIGKILL');
  await page.getByRole('link', { name: 'Agents' }).click();
  await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
  await page.getByRole('alert').filter({ hasText: 'The server does not answer.' }).waitFor();
  assert.equal(await page.getByRole('heading', { level: 1, name: 'Tasks' }).count(), 0);
  assert.match(await page.title(), /Agents/);
  await home.serve({ port });
  await page.getByRole('heading', { name: 'Run an agent' }).waitFor({ timeout: 60_000 });
  await context.close();
}));

test('the page can be installed', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  const client = await context.newCDPSession(page);
  const { url, errors, data } = await client.send('Page.getAppManifest');
  assert.equal(url, `${home.address}/manifest.webmanifest`);
  assert.deepEqual(errors, []);
  for (const { src, sizes } of JSON.parse(data).icons) {
    const size = await page.evaluate(async (address) => { const image = new Image(); image.src = address; await image.decode(); return `${image.width}x${image.height}`; }, src);
    assert.equal(size, sizes, src);
  }
  const { installabilityErrors } = await client.send('Page.getInstallabilityErrors');
  // A window that leaves no traces installs nothing; it must be all that is in the way.
  assert.deepEqual(installabilityErrors.map((error) => error.errorId).filter((id) => id !== 'in-incognito'), []);
  assert.deepEqual(page.complaints, []);
  await context.close();
}));

test('ten tabs share one stream, and another takes over when its holder closes', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  const tabs = [page];
  for (let n = 1; n < 10; n++) {
    const tab = await context.newPage();
    await tab.goto(home.address);
    await tab.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    tabs.push(tab);
  }
  const sees = async (tab, id) => tab.locator(`a[href="/tasks/${id}"]`).first().waitFor();
  const first = await home.submit([noop()]);
  await Promise.all(tabs.map((tab) => sees(tab, first)));
  await page.close();
  const second = await home.submit([noop()]);
  await Promise.all(tabs.slice(1).map((tab) => sees(tab, second)));
  await context.close();
}));

test('signing out elsewhere ends this page', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
  const { items } = await home.call('GET', '/api/v1/tokens');
  const session = items.find((token) => token.name.startsWith('page:') && !token.revoked_at);
  await home.call('DELETE', `/api/v1/tokens/${session.id}`);
  await home.submit([noop()]);
  await page.getByRole('button', { name: 'Sign in' }).waitFor({ timeout: 45_000 });
  await context.close();
}));

test('an Enter that confirms a composition does not send', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  const client = await context.newCDPSession(page);
  await page.goto(`${home.address}/chat/chat_none`);
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.focus();
  const sent = [];
  page.on('request', (request) => request.method() === 'POST' && request.url().includes('/messages') && sent.push(request.url()));
  for (const text of ['に', 'にほ', 'にほん']) await client.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length });
  // What a browser reports for the Enter that belongs to the input method.
  await field.dispatchEvent('keydown', { key: 'Enter', code: 'Enter', keyCode: 229, isComposing: true, bubbles: true });
  await client.send('Input.insertText', { text: '日本' });
  assert.equal(await field.inputValue(), '日本');
  assert.deepEqual(sent, []);
  await page.keyboard.press('Enter');
  await page.waitForRequest((request) => request.url().includes('/messages')).catch(() => {});
  assert.equal(sent.length, 1, 'the next Enter sends');
  await context.close();
}));

test('text of others is never markup, and no address but the web is a link', withHome(async (home) => {
  const { context, page } = await signedIn(home, browser);
  await page.evaluate(() => (window.hurt = false));
  const answer = await home.call('POST', '/test/tasks', { jobs: [noop()], title: undefined }).catch(() => null);
  assert.ok(answer);
  await page.goto(`${home.address}/login?back=//example.org`);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  assert.equal(new URL(page.url()).origin, home.address, 'the login leads nowhere else');
  await context.close();
}));

const PAGES = ['/', '/inbox', '/tasks', '/jobs', '/research', '/auth', '/agents', '/chat', '/schedules', '/webhooks', '/usage', '/notifications', '/calibration', '/rules', '/settings', '/doctor'];
for (const colorScheme of ['light', 'dark']) {
  test(`every page is accessible in the ${colorScheme}`, withHome(async (home) => {
    const { context, page } = await signedIn(home, browser, { colorScheme });
    const id = await home.submit([noop(), sleep(60_000)]);
    const found = {};
    for (const path of [...PAGES, `/tasks/${id}`, `/tasks/${id}?tab=history`]) {
      await page.goto(home.address + path);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
      const violations = await axe(page);
      if (violations.length) found[path] = violations;
    }
    assert.deepEqual(found, {}, colorScheme);
    assert.deepEqual(page.complaints, []);
    await context.close();
    const signedOut = await browser.newContext({ colorScheme });
    const login = await signedOut.newPage();
    const said = complaints(login);
    await login.goto(`${home.address}/inbox`);
    await login.getByRole('button', { name: 'Sign in' }).waitFor();
    assert.deepEqual(await axe(login), [], `the login (${colorScheme})`);
    assert.deepEqual(said, []);
    await signedOut.close();
  }));
}
