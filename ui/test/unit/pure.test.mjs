// What can be decided without a browser: frames, filters, folding, text, languages.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'vite';

const SRC = new URL('../../src/', import.meta.url).pathname;

/** A module of the page, for Node. */
async function load(name) {
  const output = await build({
    root: SRC, configFile: false, logLevel: 'silent',
    build: { write: false, minify: false, lib: { entry: join(SRC, 'lib', name), formats: ['es'], fileName: 'out' } },
  });
  const code = output[0].output[0].code;
  return import(`data:text/javascript,${encodeURIComponent(code)}`);
}

test('frames are read whole, however they are cut', async () => {
  const { FrameReader } = await load('sse.ts');
  const text = 'id: 1\nevent: task\ndata: {"a":1}\n\n: ping\n\nevent: bye\ndata: {"reason":"x"}\n\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new FrameReader();
    const frames = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))];
    assert.deepEqual(frames, [{ name: 'task', id: '1', data: { a: 1 } }, { name: 'bye', id: null, data: { reason: 'x' } }], `cut at ${cut}`);
  }
});

test('a patch is rows with the numbers of their lines, and comments on them are one message', async () => {
  const { message, rows } = await load('patch.ts');
  const patch = 'diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\nindex 1..2\n--- a/a.sh\n+++ b/a.sh\n@@ -3,3 +3,3 @@ fn\n same\n--- x\n+++ y\n last\n\\ No newline at end of file\n';
  assert.deepEqual(rows(patch).map(({ kind, text, old, now }) => [kind, text, old, now]), [
    ['note', 'old mode 100644', null, null], ['note', 'new mode 100755', null, null], ['hunk', '@@ -3,3 +3,3 @@ fn', null, null],
    ['same', 'same', 3, 3], ['removed', '-- x', 4, null], ['added', '++ y', null, 4], ['same', 'last', 5, 5], ['note', 'No newline at end of file', null, null],
  ]);
  assert.deepEqual(rows('diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 1\nIc-x\n').map((row) => row.text), ['GIT binary patch']);
  const remark = { path: 'a.sh', line: 4, removed: false, text: '  ++ y', comment: ' Why? ' };
  assert.equal(message([remark, { ...remark, line: 3, removed: true, comment: 'Keep it.' }], ' All good but: '), 'All good but:\n\na.sh:3 (removed line)\n> ++ y\nKeep it.\n\na.sh:4\n> ++ y\nWhy?');
});

test('code is coloured by its language, and no letter of it is lost', async () => {
  const { tokens } = await load('highlight.ts');
  const kinds = (text, path) => tokens(text, path).filter((token) => token.kind).map((token) => `${token.kind} ${token.text}`);
  assert.deepEqual(kinds('let a = "x // y"; // 1', 'a.rs'), ['keyword let', 'string "x // y"', 'comment // 1']);
  assert.deepEqual(kinds('if a: return 0x1f # "no"', 'a.py'), ['keyword if', 'keyword return', 'number 0x1f', 'comment # "no"']);
  assert.deepEqual(kinds('if it is a "letter"', 'a.txt'), []);
  for (const text of ['', '"open', 'a`b', 'x'.repeat(5_000), "it's // 日本"]) assert.equal(tokens(text, 'a.js').map((token) => token.text).join(''), text);
});

test('what is quoted as code is a part of its own', async () => {
  const { inline } = await load('chat.ts');
  assert.deepEqual(inline('run `a b` twice, not `c'), [{ text: 'run ', isCode: false }, { text: 'a b', isCode: true }, { text: ' twice, not `c', isCode: false }]);
  const parts = inline('**Bold** [site](https://a.org/x) [bad](javascript:alert(1)) **open');
  assert.deepEqual(parts.map((part) => [part.text, part.isBold ?? false, part.link?.host ?? null]), [['Bold', true, null], [' ', false, null], ['site', false, 'a.org'], [' [bad](javascript:alert(1)) **open', false, null]]);
});

test('of a chat what is settled stays, and the rest is replaced', async () => {
  const { merge, settledTo } = await load('talk.ts');
  const said = (seq, content, state = 'completed') => ({ id: `m${seq}`, seq, content, state });
  const held = [said(1, 'hello'), said(2, 'one', 'running'), said(3, 'two')];
  assert.equal(settledTo(held), 1, 'a later one may be done before an earlier');
  assert.equal(settledTo([said(1, 'hello'), said(2, 'one')]), 2);
  assert.equal(settledTo([]), 0);
  const now = { kept_to: 1, messages: [said(2, 'one and more'), said(3, 'two'), said(4, 'three', 'running')], notices: [], answering: true };
  assert.deepEqual(merge(held, now).map((message) => message.content), ['hello', 'one and more', 'two', 'three']);
  assert.deepEqual(merge([], { ...now, kept_to: 0 }), now.messages);
});

test('words of a graph lie neither over each other nor over a node', async () => {
  const { labels } = await load('scene.ts');
  const size = { width: 400, height: 200 };
  const nodes = [{ id: 'a', x: 200, y: 100 }, { id: 'b', x: 210, y: 102 }, { id: 'c', x: 200, y: 124 }, { id: 'd', x: 2, y: 2 }];
  const placed = labels(nodes.map((node) => ({ ...node, text: node.id, width: 100 })), nodes, size);
  const box = ({ x, y, width }) => ({ left: x - width / 2, right: x + width / 2, top: y - 11, bottom: y + 4 });
  assert.ok(placed.length >= 3 && placed[0].id === 'a', 'most find space, and the first one always');
  for (const one of placed) {
    const mine = box(one);
    assert.ok(mine.left >= 0 && mine.right <= 400 && mine.top >= 0 && mine.bottom <= 200, one.id);
    for (const other of placed.filter((label) => label !== one)) {
      const theirs = box(other);
      assert.ok(mine.right <= theirs.left || theirs.right <= mine.left || mine.bottom <= theirs.top || theirs.bottom <= mine.top, `${one.id} ${other.id}`);
    }
    for (const node of nodes.filter((point) => point.id !== one.id)) assert.ok(node.x <= mine.left || node.x >= mine.right || node.y <= mine.top || node.y >= mine.bottom, `${one.id} ${node.id}`);
  }
});

test('a run that ended before it was done can be continued', async () => {
  const { canContinue } = await load('types.ts');
  const task = (kind, finished_at, failed, cancelled) => ({ kind, finished_at, jobs: { failed, cancelled } });
  for (const [ended, wanted] of [[task('agent', 'now', 1, 0), true], [task('agent', 'now', 0, 1), true], [task('agent', 'now', 0, 0), false], [task('agent', null, 1, 0), false], [task('research', 'now', 1, 0), false]]) {
    assert.equal(canContinue(ended), wanted, JSON.stringify(ended));
  }
});

test('Enter in the field of the filter opens the selected row if it is shown, else the first', async () => {
  const { opened } = await load('filter.ts');
  const rows = [{ id: 'a' }, { id: 'b' }];
  for (const [selected, wanted] of [['', 'a'], ['b', 'b'], ['gone', 'a']]) assert.equal(opened(rows, (row) => row.id, selected).id, wanted, selected);
  assert.equal(opened([], (row) => row.id, 'a'), undefined);
});

test('the filter language', async () => {
  const { matches, parse } = await load('filter.ts');
  const fields = { state: 'failed', slot: 'cpu' };
  for (const [filter, wanted] of [['', true], ['state:failed', true], ['state:queued,failed', true], ['state:queued', false], ['state:failed slot:cpu HEAT', true], ['heat ｐｕｍｐ', true], ['nowhere', false], ['colour:red', false]]) {
    assert.equal(matches(parse(filter), fields, () => 'Heat pumps'), wanted, filter);
  }
  assert.equal(matches(parse('state:failed'), { status: 'failed' }, () => ''), true, 'tasks call it their status');
  const row = { state: 'failed' };
  assert.equal(matches(parse('old'), row, () => 'an old name'), true);
  assert.equal(matches(parse('old'), row, () => 'a new name'), false, 'what is remembered is not what is said now');
});

test('idle time is folded, and time keeps its order', async () => {
  const { fold } = await load('fold.ts');
  const minute = 60_000;
  const line = fold([{ from: 0, to: minute }, { from: 28 * minute, to: 30 * minute }], 0, 30 * minute, 600);
  assert.equal(line.folds.length, 1);
  assert.equal(line.folds[0].ms, 27 * minute);
  const places = Array.from({ length: 31 }, (_, n) => line.x(n * minute));
  for (let n = 1; n < places.length; n++) assert.ok(places[n] >= places[n - 1], `minute ${n}`);
  assert.ok(Math.abs(line.x(30 * minute) - 600) < 0.001);
});

test('text of others cannot deceive', async () => {
  const { pieces, visible, webAddress } = await load('text.ts');
  assert.equal(visible('a\u202eb\u0007'), 'a⟨U+202E⟩b⟨U+0007⟩');
  assert.deepEqual(pieces('see https://example.org/a. and javascript:alert(1)').map((piece) => piece.href ?? null), [null, 'https://example.org/a', null]);
  for (const bad of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'https://user:pass@example.org/', 'x']) assert.equal(webAddress(bad), null, bad);
});

test('a log line is an event where it is one', async () => {
  const { lines } = await load('log.ts');
  const read = lines('plain\n{"kind":"tool_use","tool":"Bash","text":"ls"}\n\u001b[31mred\u001b[0m\n{"half');
  assert.deepEqual(read.lines.map(({ kind, text }) => [kind, text]), [['text', 'plain'], ['tool', 'Bash ls'], ['text', 'red']]);
  assert.equal(read.rest, '{"half');
});

test('a table is one where a rule is below its head', async () => {
  const { blocks } = await load('chat.ts');
  assert.deepEqual(blocks('See:\n| a | b |\n|---|:-:|\n| 1 | x\\|y |\nend'), [{ kind: 'text', text: 'See:' }, { kind: 'table', rows: [['a', 'b'], ['1', 'x|y']] }, { kind: 'text', text: 'end' }]);
  assert.deepEqual(blocks('| a | b |\nno rule'), [{ kind: 'text', text: '| a | b |\nno rule' }]);
});

test('an answer that is still coming keeps its open fence as code', async () => {
  const { blocks } = await load('chat.ts');
  assert.deepEqual(blocks('# T\ntext\n```js\nlet a'), [{ kind: 'heading', text: 'T' }, { kind: 'text', text: 'text' }, { kind: 'code', language: 'js', text: 'let a' }]);
});

test('a line goes to whom it names', async () => {
  const { addressees } = await load('chat.ts');
  const names = ['claude', 'gpt'];
  for (const [text, fallback, wanted] of [['@Claude what?', null, ['claude']], ['hello', null, []], ['hello', 'gpt', ['gpt']], ['@all go', null, names], ['mail me@claude', null, []], ['ask @gpt.', null, ['gpt']], ['@claudette', null, []]]) {
    assert.deepEqual(addressees(text, names, fallback), wanted, text);
  }
});

test('the graph of one claim holds its evidence and where it comes from', async () => {
  const { scene } = await load('scene.ts');
  const evidence = [{ edge_id: 'e', relation: 'refutes', probability: 0.8, fragment_id: 'f', url: 'https://a.org/x', domain: 'a.org' }];
  const claims = [{ id: 'c', text: 'C', evidence }, { id: 'd', text: 'D', evidence: [] }];
  assert.equal(scene(claims, 'c', 'focus').nodes.length, 3);
  assert.equal(scene(claims, 'c', 'domains').nodes.length, 3);
  assert.equal(scene(claims, 'c', 'everything').nodes.length, 4);
});

test('every language has the same keys and the same places for values', () => {
  const table = (name) => JSON.parse(readFileSync(join(SRC, 'text', `${name}.json`), 'utf8'));
  const english = table('en');
  const values = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
  for (const name of ['ja', 'ko']) {
    const other = table(name);
    assert.deepEqual(Object.keys(other), Object.keys(english), name);
    for (const key of Object.keys(english)) {
      // A form for "one" may say it in words.
      if (!key.endsWith('_one')) assert.deepEqual(values(other[key]), values(english[key]), `${name}: ${key}`);
    }
  }
});

test('no template speaks a language of its own, and none makes markup of text', () => {
  const files = (folder) => readdirSync(folder).flatMap((name) => (statSync(join(folder, name)).isDirectory() ? files(join(folder, name)) : [join(folder, name)]));
  for (const file of files(SRC).filter((name) => name.endsWith('.svelte'))) {
    const text = readFileSync(file, 'utf8');
    assert.ok(!/\{@html|innerHTML|\sstyle="/.test(text), file);
    const template = text.replace(/<script[\s\S]*?<\/script>|<style[\s\S]*?<\/style>|<!--[\s\S]*?-->/g, '').replace(/\{[^{}]*(\{[^{}]*(\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}/g, '');
    const words = [...template.matchAll(/>([^<>]*[A-Za-z]{4,}[^<>]*)</g)].map((match) => match[1].trim()).filter((word) => !/^(Matsu|Ctrl|Enter|Brier|stderr|stdout|Ctrl K|Ctrl Enter|SVG.*)/.test(word));
    assert.deepEqual(words, [], file);
  }
});
