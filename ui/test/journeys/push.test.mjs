// A notice that reaches a browser whose page is closed. Chromium without the internet cannot subscribe, so what its push
// service would do is done here: the browser's keys are made by the test, the message is decrypted by another
// implementation of RFC 8291, and DevTools hands it to the real service worker.
import assert from 'node:assert/strict';
import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import ece from 'http_ece';
import { Home, noop, openBrowser, signedIn } from './home.mjs';

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

/** A push service on this machine: each message that comes, in order. */
async function pushService() {
  const waiting = [];
  const came = [];
  const server = createServer((request, answer) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      answer.writeHead(201).end();
      const got = { headers: request.headers, body: Buffer.concat(parts) };
      const next = waiting.shift();
      if (next) next(got);
      else came.push(got);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${server.address().port}`,
    next: () => (came.length ? Promise.resolve(came.shift()) : new Promise((resolve) => waiting.push(resolve))),
    close: () => server.close(),
  };
}

/** Says who sent it and is signed by the key that the browser was given. */
function checkSender(authorization, publicKey, host) {
  const { t: token, k: key } = Object.fromEntries(authorization.replace(/^vapid /, '').split(', ').map((part) => part.split(/=(.*)/s)));
  assert.equal(key, publicKey);
  const [head, claims, signature] = token.split('.');
  const point = Buffer.from(key, 'base64url');
  const jwk = { kty: 'EC', crv: 'P-256', x: point.subarray(1, 33).toString('base64url'), y: point.subarray(33).toString('base64url') };
  const signed = verify('sha256', Buffer.from(`${head}.${claims}`), { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
  assert.ok(signed, 'the signature fits the key');
  const said = JSON.parse(Buffer.from(claims, 'base64url'));
  assert.equal(said.aud, `http://${host}`);
  assert.ok(said.exp > Date.now() / 1000 && said.exp < Date.now() / 1000 + 86_400, 'for less than a day');
}

test('a browser subscribes, gets what ended while the page was closed, and is forgotten when it signs out', async () => {
  const service = await pushService();
  const home = new Home();
  const config = join(home.folder, '.config/matsu');
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, 'config.toml'), `[notify.browsers]\nkind = "push"\nallow_hosts = "${service.host}"\n`);
  await home.serve();
  const keys = createECDH('prime256v1');
  keys.generateKeys();
  const auth = randomBytes(16);
  const { context, page } = await signedIn(home, browser);
  await context.grantPermissions(['notifications'], { origin: home.address });
  await page.addInitScript(({ endpoint, p256dh, secret }) => {
    let known = null;
    PushManager.prototype.getSubscription = async () => known;
    PushManager.prototype.subscribe = async (options) => {
      window.subscribedTo = new Uint8Array(options.applicationServerKey).length;
      known = { toJSON: () => ({ endpoint, keys: { p256dh, auth: secret } }), unsubscribe: async () => ((known = null), true) };
      return known;
    };
  }, { endpoint: `http://${service.host}/for-this-browser`, p256dh: keys.getPublicKey('base64url'), secret: auth.toString('base64url') });
  await page.goto(`${home.address}/settings`);
  await page.getByRole('button', { name: 'Push notices to this browser' }).click();
  await page.getByRole('cell', { name: service.host }).getByText('this one').waitFor();
  assert.equal(await page.evaluate(() => window.subscribedTo), 65, 'the key of the sender, as a point');

  const id = await home.submit([noop()]);
  const got = await service.next();
  const { public_key: publicKey } = await home.call('GET', '/api/v1/push');
  checkSender(got.headers.authorization, publicKey, service.host);
  assert.equal(got.headers['content-encoding'], 'aes128gcm');
  const plain = ece.decrypt(got.body, { version: 'aes128gcm', privateKey: keys, authSecret: auth }).toString();
  const notice = JSON.parse(plain);
  assert.equal(notice.path, `/tasks/${id}`);
  assert.match(notice.title, /^done: /);

  const devtools = await context.newCDPSession(page);
  const workers = new Promise((resolve) => devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => registrations.length && resolve(registrations[0].registrationId)));
  await devtools.send('ServiceWorker.enable');
  const registrationId = await workers;
  const shown = () => page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map(({ title, body, tag, data }) => ({ title, body, tag, path: data.path })));
  const until = async (what, is) => {
    for (let n = 0; n < 200; n++) {
      const found = await shown();
      if (is(found)) return found;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`not shown: ${what}`);
  };
  const deliver = (data) => devtools.send('ServiceWorker.deliverPushMessage', { origin: home.address, registrationId, data });
  await deliver(plain);
  const [first] = await until('the notice', (found) => found.length === 1);
  assert.deepEqual(first, { title: notice.title, body: notice.text, tag: notice.id, path: notice.path });
  await deliver(plain);
  await deliver(JSON.stringify({ id: 'other', title: 'other', path: '//elsewhere.example.org/x' }));
  const both = await until('another notice', (found) => found.length === 2);
  assert.equal(both.filter(({ tag }) => tag === notice.id).length, 1, 'a repetition is not shown twice');
  assert.equal(both.find(({ tag }) => tag === 'other').path, '/inbox', 'a message leads to no other site');
  const kept = await page.evaluate(async () => (await caches.keys()).length);
  assert.equal(kept, 0, 'the worker keeps nothing');

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText(/sign in|signed out|matsu open/i).first().waitFor();
  assert.deepEqual((await home.call('GET', '/api/v1/push')).items, [], 'a browser that has signed out gets nothing');
  assert.deepEqual(page.complaints, []);
  await context.close();
  await home.close();
  service.close();
});
