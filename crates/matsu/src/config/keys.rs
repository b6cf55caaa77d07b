//! The table of all settings: name, kind, default, meaning. The reference is made from it.

use matsu_core::limits::{
    AUTH_KEPT, CANCEL_ACK_MAX, CHAT_IDLE_END, CONNECT_MAX, CONNECTIONS_MAX, HOLD_ACK_MAX, HOLD_MAX,
    LOOP_ITERATIONS_MAX, LOOP_TIME_MAX, REQUEST_MAX, SEARCH_TIME_MAX, SESSION_KEPT, TOOL_TIME_MAX, UNAUTHENTICATED_MAX,
    UNAUTHENTICATED_PER_ADDRESS_MAX,
};

use super::key::{Key, Kind, NONE};
use crate::paths::Paths;

/// A client on this machine needs no other name for it.
pub const LOOPBACK_NAMES: &str = "localhost,127.0.0.1,::1";

/// Owner and address of the repository are written in one file for all that is released.
fn repository() -> String {
    let release: serde_json::Value = serde_json::from_str(include_str!("../../../../release.json")).unwrap_or_default();
    release["repository"].as_str().unwrap_or(NONE).to_owned()
}

const SLOT: Kind = Kind::Number { min: 1, max: 1_000 };
const SECONDS: Kind = Kind::Number { min: 1, max: 7 * 24 * 3_600 };

/// One line for each setting; a test checks that the code reads every one of them.
pub const KEYS: &[Key] = &[
    Key {
        name: "store.url",
        kind: Kind::Text,
        default: Paths::default_store,
        meaning: "the store: memory:, sqlite:PATH or postgres://… (without TLS: a local server, or a tunnel)",
    },
    Key {
        name: "store.synchronous",
        kind: Kind::Word(&["full", "normal"]),
        default: |_| "full".to_owned(),
        meaning: "SQLite only: full survives a power cut; normal is faster, and a power cut may lose the last commits",
    },
    Key {
        name: "server.http",
        kind: Kind::Word(&["on", "off"]),
        default: |_| "on".to_owned(),
        meaning: "off: only the Unix socket is served",
    },
    Key {
        name: "server.listen",
        kind: Kind::Text,
        default: |_| "127.0.0.1".to_owned(),
        meaning: "the address to listen on; an address other than loopback needs server.names or server.public_url",
    },
    Key {
        name: "server.names",
        kind: Kind::Text,
        default: |_| LOOPBACK_NAMES.to_owned(),
        meaning: "host names and addresses that requests may use for this server, separated by commas",
    },
    Key {
        name: "server.public_url",
        kind: Kind::Origin,
        default: |_| NONE.to_owned(),
        meaning: "the public address of this server behind a TLS proxy, such as https://matsu.example.org: that origin is accepted, \
                  its cookies are Secure, and printed links use it",
    },
    Key {
        name: "server.port",
        kind: Kind::Number { min: 0, max: 65_535 },
        default: |_| "7878".to_owned(),
        meaning: "the port; if it is taken, the next free one; 0: any free port; server.json contains the port in use",
    },
    Key {
        name: "server.request_max",
        kind: Kind::Number { min: 1, max: 3_600 },
        default: |_| REQUEST_MAX.as_secs().to_string(),
        meaning: "seconds within which a whole request must arrive; a connection that sends no request is closed after this time",
    },
    Key {
        name: "server.unauthenticated_max",
        kind: Kind::Number { min: 8, max: 100_000 },
        default: |_| UNAUTHENTICATED_MAX.to_string(),
        meaning: "connections at once that have not presented a token yet; if there are more, the oldest is closed",
    },
    Key {
        name: "server.unauthenticated_per_address",
        kind: Kind::Number { min: 1, max: 100_000 },
        default: |_| UNAUTHENTICATED_PER_ADDRESS_MAX.to_string(),
        meaning: "connections at once without a token from each address other than loopback; if there are more, the oldest is closed",
    },
    Key {
        name: "server.connections_max",
        kind: Kind::Number { min: 16, max: 1_000_000 },
        default: |_| CONNECTIONS_MAX.to_string(),
        meaning: "connections at once, with and without a token; more are refused",
    },
    Key {
        name: "wait.hold_max",
        kind: Kind::Number { min: 1, max: 3_600 },
        default: |_| HOLD_MAX.as_secs().to_string(),
        meaning: "a waiting call is held at most this many seconds",
    },
    Key {
        name: "wait.hold_max_progress",
        kind: Kind::Number { min: 1, max: 3_600 },
        default: |_| HOLD_MAX.as_secs().to_string(),
        meaning: "a waiting call whose client asked for progress is held at most this many seconds; raise it for clients that progress keeps alive",
    },
    Key {
        name: "wait.wake",
        kind: Kind::Word(&["off", "resume"]),
        default: |_| "off".to_owned(),
        meaning: "resume: if the process of a client's session has ended and the session has unread news, start the session again; its hook must have reported it; this costs model turns",
    },
    Key {
        name: "wait.wake_after",
        kind: Kind::Number { min: 1, max: 86_400 },
        default: |_| "60".to_owned(),
        meaning: "seconds for which news stays unread before a session is resumed",
    },
    Key {
        name: "agents.roots",
        kind: Kind::MaybeText,
        default: |_| String::new(),
        meaning: "directories that agents may work in, separated by colons; the first is where they work by default",
    },
    Key {
        name: "agents.mode_max",
        kind: Kind::Word(&["read-only", "workspace-write", "full"]),
        default: |_| "read-only".to_owned(),
        meaning: "what a run of an agent may be allowed to change: nothing, its directory, or everything that you may change",
    },
    Key {
        name: "agents.confine",
        kind: Kind::Word(&["auto", "sealed", "fenced", "open"]),
        default: |_| "auto".to_owned(),
        meaning: "how runs of agents are confined: auto uses the strongest level that this machine offers; open confines nothing",
    },
    Key {
        name: "agents.read",
        kind: Kind::MaybeText,
        default: |_| matsu_adapters::agents::sandbox::reach::TOOLCHAINS.join(":"),
        meaning: "files and folders outside its directory that every run of an agent may read, separated by :",
    },
    Key {
        name: "agents.allow",
        kind: Kind::MaybeText,
        default: |_| String::new(),
        meaning: "sockets of this machine that runs of agents may reach, separated by commas: ssh-agent, keyring",
    },
    Key {
        name: "agents.bundle_max",
        kind: Kind::Number { min: 1, max: 1_000_000 },
        default: |_| "1024".to_owned(),
        meaning: "MiB that the changes of a run may have; if they are larger, the folder is kept and no changes are taken over",
    },
    Key {
        name: "agents.bundle_timeout",
        kind: Kind::Number { min: 1, max: 86_400 },
        default: |_| "300".to_owned(),
        meaning: "seconds that git may take to collect the changes of a run; after that, Matsu tries again in a separate repository; if that fails too, the folder is kept",
    },
    Key {
        name: "keep.results",
        kind: Kind::Number { min: 1, max: 3_650 },
        default: |_| (matsu_core::limits::RESULT_KEPT.as_secs() / 86_400).to_string(),
        meaning: "days that finished tasks of agents are kept with their results, read or not; branches stay until you delete them",
    },
    Key {
        name: "agents.day_tokens",
        kind: Kind::Number { min: 0, max: 1_000_000_000_000 },
        default: |_| "0".to_owned(),
        meaning: "tokens that all runs of one user may use in a day; beyond it, runs are ended and later ones wait for the next day; 0: no limit",
    },
    Key {
        name: "agents.day_cost",
        kind: Kind::Number { min: 0, max: 1_000_000 },
        default: |_| "0".to_owned(),
        meaning: "dollars that all runs of one user may cost in a day, as far as their programs or [prices] state the cost; beyond it, runs are ended and later ones wait for the next day; 0: no limit",
    },
    Key {
        name: "agents.host_grace",
        kind: Kind::Number { min: 1, max: 604_800 },
        default: |_| matsu_core::limits::HOST_GRACE.as_secs().to_string(),
        meaning: "seconds that a run waits for its machine to come back to a shared store, before it fails as HOST_LOST",
    },
    Key {
        name: "agents.keep_awake",
        kind: Kind::Word(&["off", "on_power", "always"]),
        default: |_| "off".to_owned(),
        meaning: "whether the machine is kept from sleeping while a run is active; on_power: only while it is plugged in",
    },
    Key {
        name: "slots.network_client",
        kind: SLOT,
        default: |_| "2".to_owned(),
        meaning: "searches that run at once, over all nodes of the store",
    },
    Key {
        name: "slots.agent_cli",
        kind: SLOT,
        default: |_| "5".to_owned(),
        meaning: "runs of AI command line programs at once",
    },
    Key { name: "slots.agent_chat", kind: SLOT, default: |_| "20".to_owned(), meaning: "chat agents at once" },
    Key {
        name: "slots.cpu",
        kind: SLOT,
        default: |_| std::thread::available_parallelism().map_or(1, usize::from).to_string(),
        meaning: "jobs at once that only compute; by default the number of cores",
    },
    Key {
        name: "upgrade.repository",
        kind: Kind::Text,
        default: |_| repository(),
        meaning: "address of the repository whose newest release `matsu upgrade --check` asks for",
    },
    Key {
        name: "research.folders",
        kind: Kind::Text,
        default: |_| "none".to_owned(),
        meaning: "folders that the engine local searches if the client names none, separated by colons",
    },
    Key {
        name: "research.searxng",
        kind: Kind::Text,
        default: |_| "off".to_owned(),
        meaning: "address of a SearXNG instance, to search the web",
    },
    Key {
        name: "research.openalex",
        kind: Kind::Text,
        default: |_| "off".to_owned(),
        meaning: "address of OpenAlex, https://api.openalex.org, to search scholarly works",
    },
    Key {
        name: "research.contact",
        kind: Kind::Text,
        default: |_| "none".to_owned(),
        meaning: "an e-mail address that is sent to services that ask their users for one",
    },
    Key {
        name: "research.browser",
        kind: Kind::Text,
        default: |_| "auto".to_owned(),
        meaning: "the Chromium for pages that need scripts: auto, off, or its path",
    },
    Key {
        name: "research.browser_debug",
        kind: Kind::Text,
        default: |_| "off".to_owned(),
        meaning: "debugging port of your own browser, such as 127.0.0.1:9222; when a login is done, cookies are read from there",
    },
    Key {
        name: "research.allow_hosts",
        kind: Kind::Text,
        default: |_| "none".to_owned(),
        meaning: "hosts that may be fetched although they are not public, as host or host:port, separated by commas",
    },
    Key {
        name: "research.primary_domains",
        kind: Kind::Text,
        default: |_| "none".to_owned(),
        meaning: "domains that count as primary sources besides the built-in ones, separated by commas",
    },
    Key {
        name: "research.step_ms",
        kind: Kind::Number { min: 0, max: 600_000 },
        default: |_| "2000".to_owned(),
        meaning: "milliseconds between two requests to one site; robots.txt may ask for more",
    },
    Key {
        name: "research.daily_max",
        kind: Kind::Number { min: 0, max: 1_000_000 },
        default: |_| "200".to_owned(),
        meaning: "requests to one site in a day; 0: no limit",
    },
    Key {
        name: "research.auth_kept",
        kind: Kind::Number { min: 1, max: 604_800 },
        default: |_| AUTH_KEPT.as_secs().to_string(),
        meaning: "seconds that a page waits for a person to log in",
    },
    Key {
        name: "research.search_time_max",
        kind: Kind::Number { min: 1, max: 86_400 },
        default: |_| SEARCH_TIME_MAX.as_secs().to_string(),
        meaning: "seconds after which a search ends with the results that it has so far",
    },
    Key {
        name: "chat.default_model",
        kind: Kind::Text,
        default: |_| "none".to_owned(),
        meaning: "the provider that answers a line without a mention; none: such a line is a note",
    },
    Key {
        name: "chat.agents",
        kind: Kind::Text,
        default: |_| NONE.to_owned(),
        meaning: "agents whose programs answer in chats as models, such as claude,codex,gemini; messages \
                  are sent to their vendors with your own logins",
    },
    Key {
        name: "chat.turns_max",
        kind: Kind::Number { min: 1, max: 1_000 },
        default: |_| LOOP_ITERATIONS_MAX.to_string(),
        meaning: "rounds of one answer: each is one request to the model, with the tool calls that it asks for",
    },
    Key {
        name: "chat.seconds_max",
        kind: SECONDS,
        default: |_| LOOP_TIME_MAX.as_secs().to_string(),
        meaning: "seconds that one answer may take, not counting the time in which a person is asked",
    },
    Key {
        name: "chat.tool_seconds_max",
        kind: SECONDS,
        default: |_| TOOL_TIME_MAX.as_secs().to_string(),
        meaning: "seconds that a tool call may take without progress; timeout in an MCP server's entry takes precedence",
    },
    Key {
        name: "chat.tokens_max",
        kind: Kind::Number { min: 0, max: 1_000_000_000 },
        default: |_| "0".to_owned(),
        meaning: "tokens that the answers to one line may use together; beyond it, the answers and the work that they started are ended; 0: no limit",
    },
    Key {
        name: "chat.cost_max",
        kind: Kind::Number { min: 0, max: 1_000_000_000_000 },
        default: |_| "0".to_owned(),
        meaning: "money that the answers to one line may use together, in millionths of the currency of input_price and output_price; beyond it, the answers and the work that they started are ended; 0: no limit",
    },
    Key {
        name: "research.model",
        kind: Kind::Text,
        default: |_| "embedded".to_owned(),
        meaning: "what extracts claims, judges them and writes reports: embedded (offline), the name of a provider, agent:NAME, or auto: Matsu asks a person once",
    },
    Key {
        name: "research.ranking_weights",
        kind: Kind::Text,
        default: |_| "shipped".to_owned(),
        meaning: "a file with other weights for ranking sentences, to measure them (scripts/train-ranking.py makes such files)",
    },
    Key {
        name: "mcp.servers_file",
        kind: Kind::Text,
        default: |paths| paths.data_dir.join("mcp.json").display().to_string(),
        meaning: "a JSON file with mcpServers, whose tools models may use in chats",
    },
    Key {
        name: "sessions.ttl",
        kind: SECONDS,
        default: |_| SESSION_KEPT.as_secs().to_string(),
        meaning: "an agent's session ends this many seconds after its last call",
    },
    Key {
        name: "sessions.idle_end",
        kind: SECONDS,
        default: |_| CHAT_IDLE_END.as_secs().to_string(),
        meaning: "after this many seconds without new messages, the agent of a chat gets the order to end",
    },
    Key {
        name: "sessions.connect_max",
        kind: SECONDS,
        default: |_| CONNECT_MAX.as_secs().to_string(),
        meaning: "seconds until a chat shows that its agent has not connected",
    },
    Key {
        name: "sessions.cancel_grace",
        kind: SECONDS,
        default: |_| CANCEL_ACK_MAX.as_secs().to_string(),
        meaning: "seconds that an agent has to acknowledge that its task was cancelled, before the agent is ended",
    },
    Key {
        name: "sessions.hold_grace",
        kind: SECONDS,
        default: |_| HOLD_ACK_MAX.as_secs().to_string(),
        meaning: "seconds that an agent has to acknowledge that its task was blocked or paused, before the agent is ended",
    },
    Key {
        name: "lang",
        kind: Kind::Word(&["en", "ja", "ko"]),
        default: |_| "en".to_owned(),
        meaning: "the language of messages to agents and people",
    },
    Key {
        name: "log.level",
        kind: Kind::Word(&["error", "warn", "info", "debug", "trace"]),
        default: |_| "info".to_owned(),
        meaning: "how detailed the log is; -v shows more",
    },
    Key {
        name: "log.format",
        kind: Kind::Word(&["text", "json"]),
        default: |_| "text".to_owned(),
        meaning: "the format of the log on stderr",
    },
];
