// Who the page's people deal with: agents that come over the tools as real ones do, a program that is run as an agent, a
// folder of documents, and a small web with a page that needs a login.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

/** An agent without a model. */
export class Agent {
  constructor(home, id) {
    this.home = home;
    this.id = id;
    /** Kept when it works on its task. */
    this.begun = new Promise((resolve) => (this.begin = resolve));
  }

  tool(name, args = {}) {
    return this.home.call('POST', `/api/v1/tools/${name}`, { session_token: this.token, ...args });
  }

  async register() {
    this.passkey = (await this.home.call('POST', '/api/v1/agents', { id: this.id, name: this.id })).passkey;
    return this;
  }

  async arrive() {
    const entered = await this.home.call('POST', '/api/v1/tools/authenticate', { agent_id: this.id, passkey: this.passkey, project_id: 'default' });
    assert.equal(entered.ok, true, JSON.stringify(entered));
    this.token = entered.session_token;
  }

  /** Answers every message until its session ends; the last action. */
  async chat(answer = (content) => `You said: ${content}`) {
    await this.arrive();
    for (;;) {
      const next = await this.tool('get_next_action', { timeout_seconds: 30 });
      if (!next.ok || next.action === 'end_session') return next;
      for (const message of next.messages ?? []) await this.tool('send_message', { content: answer(message.content), reply_to: message.id });
    }
  }

  /** Works on its task until it is interrupted, then does what the interrupt says. Returns its notifications. */
  async work() {
    await this.arrive();
    const next = await this.tool('get_next_action', { timeout_seconds: 30 });
    assert.equal(next.action, 'work', JSON.stringify(next));
    this.begin();
    // Each call is held until something moves, so nothing here counts time.
    while (!(await this.tool('get_next_action', { timeout_seconds: 30 })).interrupted);
    const { notifications } = await this.tool('get_notifications');
    const ended = await this.tool('report_completed', { result: 'blocked', summary: 'stopped as instructed' });
    assert.equal(ended.ok, true, JSON.stringify(ended));
    return notifications;
  }
}

/** A search engine that finds one article which only members may read. */
export class Web {
  async start() {
    this.server = createServer((request, response) => this.answer(request, response));
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.host = `127.0.0.1:${this.server.address().port}`;
    return this;
  }

  answer(request, response) {
    const { pathname } = new URL(request.url, `http://${this.host}`);
    const say = (status, kind, body) => response.writeHead(status, { 'Content-Type': kind }).end(body);
    if (pathname === '/search') {
      const results = [{ url: `http://${this.host}/members/heat-pumps`, title: 'For members', content: '' }];
      return say(200, 'application/json', JSON.stringify({ results, unresponsive_engines: [] }));
    }
    if (pathname !== '/members/heat-pumps') return say(404, 'text/plain', '');
    if (!/session=open-sesame/.test(request.headers.cookie ?? '')) return say(401, 'text/html', '<h1>Log in</h1><form><input type="password"></form>');
    return say(200, 'text/html', `<html lang="en"><body><article><h1>Heat pumps for members</h1><p>${ARTICLE.join('</p><p>')}</p></article></body></html>`);
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

const ARTICLE = [
  'Only members learn that the payback time of a heat pump was under nine years in 80 percent of the homes that were measured.',
  'The survey of 400 households found that heat pumps stayed below 45 decibels at three metres, which neighbours did not hear.',
  'In the field test of 2024 the heat pump kept a coefficient of performance above 2 at minus 15 degrees for the whole winter.',
];

/**
 * A prompt with `forever` does not end by itself; one with `note` asks before it writes; one with `greeting` writes a
 * program with two mistakes, which it mends when both lines are commented on in the same conversation.
 */
const SCRIBE = `#!/bin/sh
prompt=$(cat "$1")
echo '{"type":"session","id":"notebook"}'
case "$prompt" in
*forever*) sleep 600 ;;
*farewell*) echo 'Until then.' >farewell.txt ;;
*greeting*)
  mkdir -p bin
  printf '#!/bin/sh\\n# Says hello.\\nname="$1"\\necho "helo $name"\\necho "by"\\n' >bin/greet.sh
  echo 'Draft.' >>README.md ;;
*bin/greet.sh:4*bin/greet.sh:5*)
  [ "$2" = resume ] || exit 3
  sed -i -e 's/helo/hello/' -e 's/by"/bye"/' bin/greet.sh ;;
*note*)
  echo '{"type":"tool","name":"Read","input":{"path":"README.md"}}'
  echo '{"type":"text","text":"The project says little about waiting. A note would help who comes next."}'
  echo '{"type":"tool","name":"Bash","input":{"command":"git log --oneline -5"}}'
  echo '{"type":"text","text":"None is written yet."}'
  echo '{"type":"question","id":"q1","text":"May I write notes.txt?","options":["allow","deny"]}'
  read answer
  case "$answer" in *'"option":"allow"'*) echo "waiting is cheap" >notes.txt ;; esac ;;
esac
echo '{"type":"result","text":"It waits, so that you need not."}'
`;

/** An agent called `scribe` that works in a repository of its own; that repository. Before the server starts. */
export function hireScribe(home) {
  const program = join(home.folder, 'scribe.sh');
  writeFileSync(program, SCRIBE);
  chmodSync(program, 0o755);
  const agents = join(home.folder, '.config/matsu/agents');
  mkdirSync(agents, { recursive: true });
  writeFileSync(join(agents, 'scribe.toml'), `name = "scribe"\ncommand = "${program}"\nargs = ["{prompt_file}"]\nprompt = "file"\noutput = "events"\n[session]\nresume = { args = ["resume", "{session}"] }\n`);
  const repository = join(home.folder, 'repository');
  mkdirSync(repository);
  writeFileSync(join(repository, 'README.md'), '# A project\n');
  for (const args of [['init', '-q', '-b', 'main'], ['add', '.'], ['-c', 'user.name=Test', '-c', 'user.email=test@localhost', 'commit', '-q', '-m', 'begin']]) {
    execFileSync('git', args, { cwd: repository });
  }
  Object.assign(home.env, { MATSU_AGENTS_ROOTS: repository, MATSU_AGENTS_MODE_MAX: 'workspace-write' });
  return repository;
}

const PAYBACK = 'the payback time of a heat pump was under nine years';
const NOISE = 'heat pumps stayed below 45 decibels at three metres';
const WHO = ['A survey', 'The field test', 'An audit', 'The institute', 'The network operator'];
/** Five who agree, and two who do not. */
const DOCUMENTS = [
  ...WHO.map((_, n) => [`survey-${n}`, `${WHO[n]} found that ${PAYBACK}. ${WHO[n]} also measured that ${NOISE}.`]),
  ['critique-1', 'The payback time of a heat pump was not under nine years. It took fourteen years in our sample.'],
  ['critique-2', 'Heat pumps did not stay below 45 decibels at three metres.'],
];

/** Waits until a research task has nothing left to do. */
export async function settled(home, task_id) {
  for (let since = 0; ; ) {
    const status = await home.call('POST', '/api/v1/tools/get_status', { task_id, wait: 50, wait_for: 'all', since });
    if (['idle', 'terminal'].includes(status.returned_because)) return status;
    since = status.next.since;
  }
}

/** A folder that the engine `local` searches. Before the server starts. */
export function bringDocuments(home) {
  const folder = join(home.folder, 'documents');
  mkdirSync(folder);
  for (const [name, text] of DOCUMENTS) writeFileSync(join(folder, `${name}.md`), `---\nurl: https://${name}.test/paper\n---\n# ${name}\n\n${text}\n`);
  Object.assign(home.env, { MATSU_RESEARCH_FOLDERS: folder, MATSU_RESEARCH_STEP_MS: '0', MATSU_RESEARCH_BROWSER: 'off' });
}
