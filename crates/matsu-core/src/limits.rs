//! Every bound of the system, in one place; `matsu limits` prints this table.
//!
//! A bound that can be configured says so; its value here is the default.

use std::time::Duration;

macro_rules! limits {
    ($($(#[$($meta:tt)*])* $name:ident: $type:ty = $value:expr, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: $type = $value;)*

        /// Name, value and meaning of every bound, in the order they are declared.
        #[must_use]
        pub fn all() -> Vec<Limit> {
            vec![$(Limit { name: stringify!($name), value: $name.show(), meaning: $text },)*]
        }
    };
}

/// One line of `matsu limits`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Limit {
    pub name: &'static str,
    pub value: String,
    pub meaning: &'static str,
}

limits! {
    HOLD_MAX: Duration = Duration::from_secs(50), "a waiting call is held at most this long (configurable: wait.hold_max)";
    SAFETY_READ_EVERY: Duration = Duration::from_secs(5), "each process reads the store this often, in case a wake-up was lost";
    FOREIGN_POLL_EVERY: Duration = Duration::from_millis(50), "how soon a change by another process on the same SQLite file is noticed";
    COLLECT_FOR: Duration = Duration::from_secs(1), "after a job has finished, a wait collects further finished jobs for this long";
    PROGRESS_EVERY: Duration = Duration::from_secs(1), "progress of a task becomes visible at most this often";
    BEAT_EVERY: Duration = Duration::from_secs(10), "a node renews its heartbeat this often (PostgreSQL)";
    BEATLESS_TICKS_MAX: u32 = 30, "one-second ticks without a new heartbeat after which a node counts as dead (PostgreSQL)";
    TICK: Duration = Duration::from_secs(1), "the unit in which run times, grace periods and heartbeats are counted";
    TICK_GAP_MAX: Duration = Duration::from_secs(3), "a longer gap between two ticks means that this process was suspended; the count starts again";
    RUN_CALL_HELD: Duration = Duration::from_secs(30), "a call from inside a run is held this long while no daemon answers";
    GRACE: Duration = Duration::from_secs(30), "a graceful stop waits this long for running jobs to end";
    ABORT_GRACE: Duration = Duration::from_secs(5), "an aborted job has this long to clean up";
    SHUTDOWN_GRACE: Duration = Duration::from_secs(10), "longest clean shutdown, even if the store does not respond";
    LINGER: Duration = Duration::from_secs(2), "in a shutdown, clients have this long to receive the last replies";
    STORE_CLOSE_MAX: Duration = Duration::from_secs(1), "in a shutdown, the store has this long to run the operations that are queued";
    HAND_OVER_KEPT: Duration = Duration::from_secs(3), "the request of another version to take over the store expires after this long, unless it is repeated";
    IDLE_EXIT: Duration = Duration::from_secs(30 * 60), "a daemon that a client started exits after this long without work and without clients";
    DAEMON_START_MAX: Duration = Duration::from_secs(3), "a client waits this long for a daemon to answer; then it runs Matsu in its own process";
    JOBS_PER_CALL_MAX: usize = 100, "jobs that one call may enqueue";
    CHILDREN_MAX: u32 = 10, "tasks that one task may start";
    DEPTH_MAX: u32 = 3, "nesting depth of tasks that start tasks";
    FAILURES_MAX: u32 = 3, "errors of a research job before it fails";
    DEATHS_MAX: u32 = 3, "how often in a row the server may die while a job runs without a new checkpoint; after that the job runs alone, and the next time it fails";
    LONE_AFTER: Duration = Duration::from_secs(10), "a server runs this long before it starts a job that must run alone; otherwise a server that something else keeps ending would be counted against the job";
    RETRY_FIRST: Duration = Duration::from_secs(1), "pause before the first retry; doubles";
    RETRY_MAX: Duration = Duration::from_secs(300), "longest pause before a retry";
    DELAY_MAX: Duration = Duration::from_secs(30 * 60), "longest delay of a job; a longer one is treated as a clock change, and the job runs at once";
    ERROR_MESSAGE_CHARS_MAX: usize = 1_000, "characters kept of a job's error message";
    TITLE_CHARS_MAX: usize = 200, "characters kept of a task's title";
    TASK_CONFIG_BYTES_MAX: usize = 64 * 1024, "bytes of a task's settings";
    JOB_INPUT_BYTES_MAX: usize = 2 * 1024 * 1024, "bytes of one job's input";
    JOB_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024, "bytes of one job's output";
    PROGRESS_BYTES_MAX: usize = 4 * 1024, "bytes of a job's progress note";
    CHECKPOINT_BYTES_MAX: usize = 4 * 1024 * 1024, "bytes of a job's checkpoint";
    BODY_BYTES_MAX: usize = 4 * 1024 * 1024, "bytes of one HTTP request body";
    UNAUTHENTICATED_BODY_BYTES_MAX: usize = 16 * 1024, "bytes of a request body that are read without a token";
    REQUEST_MAX: Duration = Duration::from_secs(30), "a request must arrive completely within this time; a connection without a request is closed after it (configurable: server.request_max)";
    UNAUTHENTICATED_MAX: usize = 512, "connections without a token at once (configurable: server.unauthenticated_max)";
    UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 64, "connections without a token at once from one address other than loopback (configurable: server.unauthenticated_per_address)";
    CONNECTIONS_MAX: usize = 20_000, "connections at once, with and without a token (configurable: server.connections_max)";
    HTTP_SESSIONS_PER_PRINCIPAL_MAX: usize = 256, "MCP sessions over HTTP that one principal may have open; a further one ends the session that was idle longest";
    HTTP_SESSION_KEPT: Duration = Duration::from_secs(2 * 3600), "an MCP session over HTTP ends after this long without a request";
    FRAME_BYTES_MAX: usize = 16 * 1024 * 1024, "bytes of one MCP frame on stdio or the socket";
    ARGUMENT_BYTES_MAX: usize = 2 * 1024 * 1024, "bytes of one tool call's arguments";
    RESULT_HEAD_BYTES_MAX: usize = 8 * 1024, "bytes of a result that one reply carries; the rest is read by offset";
    RUN_SECONDS_MAX: u32 = 24 * 3_600, "longest run time of an agent that a caller can set, in seconds";
    RUN_SECONDS: u32 = 1_800, "default run time of an agent, in seconds";
    CHECK_SECONDS: u32 = 1_800, "default run time of a check, in seconds";
    CHECK_COMMAND_BYTES_MAX: usize = 32 * 1024, "bytes of the command of a check";
    CHECK_TAIL_BYTES_MAX: usize = 8 * 1024, "bytes kept of the end of what a check printed";
    CHECK_RETRIES_MAX: u32 = 5, "how often a failed check is sent back to its agent";
    HOST_GRACE: Duration = Duration::from_secs(600), "a run whose machine is no longer connected to the store waits this long for it (configurable: agents.host_grace)";
    QUOTA_PAUSE: Duration = Duration::from_secs(60), "the first pause of a run whose vendor does not say when its quota returns; each later one is twice as long";
    QUOTA_PAUSE_MAX: Duration = Duration::from_secs(3600), "the longest pause for a quota whose return is not known";
    QUOTA_WAITS_MAX: u32 = 30, "pauses for a quota before the run fails with AGENT_QUOTA";
    SPENT_KEPT: Duration = Duration::from_secs(400 * 24 * 3600), "the cost of a run is kept this long for matsu usage";
    SPENT_RUNS_MAX: u32 = 100_000, "runs that one `matsu usage` report covers";
    MERGE_TASKS_MAX: usize = 100, "tasks whose changes one merge can combine";
    MERGE_FIXES_MAX: u32 = 5, "how often one merge sends the changes of a task back to its agent";
    RUN_RESTARTS_MAX: u32 = 3, "how often a run is resumed after a restart of its machine";
    RUN_OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024, "bytes of a run's result, and of its log, that are kept: the first and the last half; the text states how much of the middle was cut";
    RUN_PART_BYTES_MAX: usize = 32 * 1024, "bytes of a run's output that are stored at a time";
    RUN_FLUSH_AFTER: Duration = Duration::from_millis(200), "output of a run is stored this long after it was printed";
    RUN_LINE_BYTES_MAX: usize = 4 * 1024 * 1024, "bytes of one line of an agent's stream; a longer one is skipped";
    RUN_TAIL_BYTES_MAX: usize = 4 * 1024, "bytes kept of the end of both streams of a run";
    RUN_TERM_GRACE: Duration = Duration::from_secs(3), "processes of an ended run are killed this long after SIGTERM";
    RUN_REQUESTS_MAX: u32 = 500, "model requests of one run, unless its definition sets another limit";
    PROBE_MAX: Duration = Duration::from_secs(5), "an agent's program has this long to print its version";
    SYSTEM_PROMPT_CHARS_MAX: usize = 100_000, "characters of a system prompt";
    PROMPT_ARGUMENT_BYTES_MAX: usize = 100 * 1024, "bytes of a prompt that goes into an argument; a longer one needs stdin or a file";
    RUN_AT_MAX: Duration = Duration::from_secs(30 * 24 * 3600), "a run may start at most this far in the future (run_at)";
    DEPENDENCIES_MAX: usize = 20, "tasks that one task may wait for before it starts (depends_on)";
    DEPENDENCIES_TEXT_BYTES_MAX: usize = 24 * 1024, "bytes of the results of these tasks that the prompt repeats";
    AGENTS_PER_CALL_MAX: usize = 10, "agents that one call may start";
    SESSIONS_KEPT: Duration = Duration::from_secs(90 * 24 * 3600), "a conversation with an agent can be resumed this long after its last run";
    TAIL_LINES_MAX: u32 = 200, "lines of output that one reply may carry";
    OPEN_TASKS_LISTED_MAX: u32 = 20, "tasks that a call without ids lists";
    INLINE_WAIT: Duration = Duration::from_secs(3), "a wait that takes longer becomes a native task if the client supports them";
    NATIVE_WAIT_MAX: Duration = Duration::from_secs(24 * 3600), "a wait that became a native task ends after this long";
    FIRINGS_KEPT: u32 = 100, "firings of one schedule whose outcome is kept";
    FIRING_LEASE: Duration = Duration::from_secs(60), "a claimed firing can be claimed by another node after this long";
    SCHEDULE_GAP_MIN: Duration = Duration::from_secs(60), "a schedule fires at most once in this time";
    SCHEDULE_LATE: Duration = Duration::from_secs(60), "a firing that is late by more than this counts as missed";
    SCHEDULES_MAX: u32 = 200, "schedules of one user";
    WEBHOOKS_MAX: u32 = 50, "webhooks of one user";
    WEBHOOK_BODY_BYTES_MAX: usize = 1024 * 1024, "bytes of the body of one delivery to a webhook";
    WEBHOOK_BODY_MAX: Duration = Duration::from_secs(10), "the body of a delivery to a webhook arrives within this time";
    WEBHOOK_DELIVERIES_AT_ONCE: usize = 4, "deliveries to webhooks whose body is read at the same time";
    WEBHOOK_REQUESTS_MAX: u32 = 60, "requests to one webhook in a minute, with a good or a bad signature";
    WEBHOOK_GAP_MIN: Duration = Duration::from_secs(60), "a webhook starts at most one task in this time";
    WEBHOOK_WAITING_MAX: u32 = 20, "deliveries to one webhook that wait for their start";
    WEBHOOK_CLOCK_SKEW: Duration = Duration::from_secs(300), "the signed time of a delivery may differ this much from the clock of this machine";
    WEBHOOK_DELIVERIES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600), "a delivery to a webhook is remembered this long; a repetition starts nothing";
    WEBHOOK_DATA_BYTES_MAX: usize = 64 * 1024, "bytes of a delivery that the agent gets";
    WEBHOOK_TEMPLATE_BYTES_MAX: usize = 32 * 1024, "bytes of the template of a webhook";
    LIST_PAGE_MAX: u32 = 200, "rows of one page of a list";
    TASKS_PER_WAIT_MAX: usize = 50, "handles that one call may wait for";
    CHANGES_KEPT: Duration = Duration::from_secs(24 * 3600), "change events can be resumed this far back";
    IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600), "an idempotency key is remembered this long";
    RESULT_KEPT: Duration = Duration::from_secs(30 * 24 * 3600), "a finished agent task is kept this long, read or not (configurable: keep.results)";
    WAIT_KEPT_AFTER_READ: Duration = Duration::from_secs(3600), "a finished native wait is kept this long after it was first read";
    RESULT_KEPT_IN_MEMORY: Duration = Duration::from_secs(3600), "a finished agent task is kept this long after its end in a memory store";
    TOMBSTONE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600), "the id of an expired task still returns how the task ended for this long";
    DAEMON_LOG_BYTES_MAX: u64 = 5 * 1024 * 1024, "bytes of the daemon's log file; a longer one is renamed, and one old file is kept";
    REFUSALS_LOGGED_MAX: u32 = 10, "refused requests that are logged one by one in each period";
    REFUSALS_LOGGED_EVERY: Duration = Duration::from_secs(10), "the period in which refused requests are counted; further refusals are logged as a number";
    SECONDS_SET_ASIDE: u32 = 5, "seconds of a task's budget that a running job sets aside at a time";
    SYSTEM_JOBS_KEPT: Duration = Duration::from_secs(24 * 3600), "a finished system job, which belongs to no task, is kept this long";
    REVOKED_TOKENS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600), "a revoked token is still listed for this long";
    SWEEP_EVERY: Duration = Duration::from_secs(60), "how often expired rows are removed";
    SWEEP_ROWS_MAX: u32 = 500, "rows that one sweep removes in one transaction";
    WRITE_BATCH_MAX: usize = 256, "operations that share one commit";
    WAITS_PER_PRINCIPAL_MAX: usize = 20_000, "waits that one principal may hold open";
    TASKS_PER_PRINCIPAL_MAX: u32 = 20_000, "unfinished tasks that one principal may have";
    CURSORS_MAX: usize = 10_000, "client instances for which the delivered revisions are remembered";
    CURSOR_TASKS_MAX: usize = 1_000, "handles remembered for each client instance";
    SHARE_PAUSE: Duration = Duration::from_millis(25), "a node that has its share of a slot leaves further permits to the other nodes for this long";
    FAILED_SHOWN_FOR: Duration = Duration::from_secs(24 * 3600), "failures are counted on the page for this long";
    LOGIN_CODE_KEPT: Duration = Duration::from_secs(5 * 60), "a login code works once, within this time";
    LOGIN_CODES_MAX: usize = 16, "login codes that can be open at once";
    LOGIN_FAILURES_MAX: usize = 5, "wrong login codes after which the next try has to wait";
    LOGIN_FAILURES_WITHIN: Duration = Duration::from_secs(60), "wrong login codes count for this long";
    PAGE_SESSION_IDLE: Duration = Duration::from_secs(12 * 3600), "a browser session without a request ends after this long";
    PAGE_SESSION_MAX: Duration = Duration::from_secs(30 * 24 * 3600), "a browser session lasts at most this long";
    STREAMS_MAX: usize = 64, "event streams that can be open at once";
    STREAM_TOPICS_MAX: usize = 64, "topics that one event stream may follow";
    STREAM_PAUSE: Duration = Duration::from_millis(50), "shortest pause between two reads of an event stream";
    STREAM_COUNTS_EVERY: Duration = Duration::from_secs(1), "shortest pause between two counts that an event stream sends";
    STREAM_PING_EVERY: Duration = Duration::from_secs(15), "an event stream without events sends a ping this often";
    ORDERS_PAUSE: Duration = Duration::from_millis(50), "shortest pause between two checks for stopped work";
    STORE_RETRY_FIRST: Duration = Duration::from_millis(50), "pause after the first failure of the store; doubles";
    STORE_RETRY_MAX: Duration = Duration::from_secs(5), "longest pause before the store is tried again";
    QUESTION_CHARS_MAX: usize = 2_000, "characters of a research task's question";
    QUERY_CHARS_MAX: usize = 500, "characters of one search's query";
    QUERIES_PER_CALL_MAX: usize = 100, "searches that one call may queue";
    SEARCH_TIME_MAX: Duration = Duration::from_secs(300), "a search that takes longer ends with what it has (configurable: research.search_time_max)";
    CANDIDATES_MAX: usize = 200, "results that one search keeps for reading";
    REDIRECTS_MAX: u32 = 5, "redirects that are followed for one page";
    PAGE_CACHE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600), "a page that was read is not requested again for this long";
    RATE_LIMITED_PAUSE: Duration = Duration::from_secs(60), "a site that answered with status 429 gets no request for at least this long";
    CLAIMS_PER_SEARCH_MAX: usize = 30, "claims that one search takes from the pages that it read";
    VERIFY_PASSAGES_MAX: u32 = 5_000, "passages of a task that a claim is compared with";
    VERIFY_CLOSEST_MAX: usize = 20, "closest passages that are judged for one claim";
    AUTH_KEPT: Duration = Duration::from_secs(3 * 3600), "a page that needs a login waits this long for a person";
    DELIVERED_REVISIONS_MAX: usize = 64, "replies about one research task that are remembered, so that a later reply lists only changes";
    AUTH_LISTED_MAX: u32 = 100, "pages waiting for a person that one reply lists";
    SEARCHES_LISTED_MAX: u32 = 100, "searches that one reply lists";
    MATERIALS_BYTES_MAX: usize = 15 * 1024, "bytes of claims in one default reply of materials";
    MATERIALS_LIMIT_DEFAULT: u32 = 30, "claims in one reply of materials by default";
    ORPHANS_LISTED_MAX: u32 = 1_000, "pages, fragments and edges, of each, that a clean-up lists";
    REPORT_CLAIMS_MAX: usize = 600, "claims that one report uses, best first";
    REPORT_CLAIMS_WRITTEN_MAX: usize = 60, "claims from which a model writes one report";
    REPORT_PAGES_MAX: u32 = 500, "pages that one report lists as read";
    MATERIALS_LIMIT_MAX: u32 = 200, "most claims in one reply of materials";
    LOOP_ITERATIONS_MAX: u32 = 10, "turns of a model that one answer may take";
    LOOP_TIME_MAX: Duration = Duration::from_secs(120), "how long one answer may take; waiting for a person does not count";
    LOOP_CALLS_AT_ONCE_MAX: usize = 4, "tool calls of one turn that run at once";
    LOOP_REPEATS_MAX: u32 = 3, "calls of one tool in a row with the same arguments that end an answer";
    TOOL_TIME_MAX: Duration = Duration::from_secs(60), "a tool call without progress is cancelled after this long";
    TOOL_OUTPUT_BYTES_MAX: usize = 50 * 1024, "bytes of a tool's output that a model gets at once; it reads the rest with another tool";
    TOOL_OUTPUTS_KEPT: usize = 16, "long tool outputs kept for a chat";
    TOOL_OUTPUT_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024, "bytes kept of one long tool output";
    DRAFT_EVERY: Duration = Duration::from_secs(2), "an unfinished answer is saved at most this often";
    CHAT_LINE_CHARS_MAX: usize = 200_000, "characters of one message to models";
    IMAGES_BYTES_MAX: usize = 2_750_000, "bytes of all images of one message to models, or of one result of a tool";
    IMAGES_MAX: usize = 8, "images of one message to models, or of one result of a tool";
    IMAGES_SENT_BYTES_MAX: usize = 12_000_000, "bytes of images in one request to a model; older images are replaced by text";
    IMAGES_SENT_MAX: usize = 20, "images in one request to a model";
    CHAT_IDLE_MAX: Duration = Duration::from_secs(15 * 60), "MCP servers of an unused chat are closed after this long";
    MODEL_RETRIES_MAX: u32 = 3, "times a request to a model is repeated before its answer has begun";
    MODEL_RETRY_FIRST: Duration = Duration::from_millis(500), "pause before a model is asked again; doubles";
    MODEL_RETRY_WAIT_MAX: Duration = Duration::from_secs(60), "a request is not repeated if the vendor asks for a longer pause";
    MODEL_HEADERS_MAX: Duration = Duration::from_secs(60), "a model's server must begin to answer within this time";
    MODEL_IDLE_MAX: Duration = Duration::from_secs(120), "longest silence in the middle of a model's answer";
    MODEL_STREAM_BYTES_MAX: usize = 64 * 1024 * 1024, "bytes of one model's answer on the wire";
    MODEL_ERROR_BYTES_MAX: usize = 64 * 1024, "bytes that are read of a vendor's error reply";
    MESSAGE_CHARS_MAX: usize = 4_000, "characters of one chat message";
    MESSAGES_PER_ACTION_MAX: u32 = 10, "chat messages that one get_next_action returns";
    NOTIFICATIONS_PER_CALL_MAX: u32 = 50, "notifications that one get_notifications returns";
    NOTIFICATION_TEXT_CHARS_MAX: usize = 32_000, "a notification with more characters of a person's messages takes no further message; the next one makes a new notification";
    NOTICE_QUIET: Duration = Duration::from_secs(3), "a notice to a person is sent after this long, unless the result was read or the question answered meanwhile";
    NOTICE_LEASE: Duration = Duration::from_secs(120), "a notice that a node has claimed and not finished is sent by another node after this long";
    NOTICE_SPACING_FIRST: Duration = Duration::from_secs(5), "pause after a message before the next one of the same channel; doubles while messages follow each other";
    NOTICE_SPACING_MAX: Duration = Duration::from_secs(60), "longest pause between two messages of a channel";
    NOTICE_RETRY_FIRST: Duration = Duration::from_secs(5), "pause before a notice that could not be sent is sent again; doubles";
    NOTICE_RETRY_MAX: Duration = Duration::from_secs(1800), "longest pause before a notice is sent again";
    NOTICE_GIVEN_UP_AFTER: Duration = Duration::from_secs(3 * 24 * 3600), "a notice that cannot be sent is given up after this long";
    NOTICE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600), "a notice that was sent, a channel that is no longer configured and a code of an answer are removed after this long";
    NOTICE_BUNDLE_MAX: u32 = 2_000, "most notices in one message";
    NOTICE_TEXT_CHARS_MAX: usize = 500, "characters of a result, an error or a question that a notice carries";
    SEARCH_WORDS_MAX: usize = 4, "words by which tasks are searched; further words are ignored";
    SUBSCRIPTIONS_MAX: u32 = 20, "browsers of one user that get notices by push";
    NEXT_ACTION_HOLD: Duration = Duration::from_secs(30), "how long get_next_action waits by default";
    SESSION_KEPT: Duration = Duration::from_secs(3600), "a session without a call ends after this long (configurable: sessions.ttl)";
    SESSION_TOUCH_EVERY: Duration = Duration::from_secs(60), "how often the calls of a session renew its expiry; a sixtieth of its length if that is shorter";
    CHAT_IDLE_END: Duration = Duration::from_secs(600), "an agent in a chat without new messages gets the order to end after this long (configurable: sessions.idle_end)";
    CHAT_STARTS_MAX: u32 = 3, "times an agent is started for a message before a person has to write again";
    CHAT_ANSWER_MESSAGES_MAX: usize = 10, "messages into which one long answer of a started agent is split; the rest is dropped, with a note";
    CHAT_RUN_SECONDS_MAX: u32 = 24 * 3_600, "longest run of an agent that itself waits for messages of a chat, in seconds";
    CONNECT_MAX: Duration = Duration::from_secs(120), "an agent that was started for a chat has this long to connect (configurable: sessions.connect_max)";
    CANCEL_ACK_MAX: Duration = Duration::from_secs(60), "an agent that does not acknowledge a cancel is ended after this long (configurable: sessions.cancel_grace)";
    HOLD_ACK_MAX: Duration = Duration::from_secs(300), "an agent that does not acknowledge a block or a pause is ended after this long (configurable: sessions.hold_grace)";
    NOTIFICATION_KEPT_UNREAD: Duration = Duration::from_secs(7 * 24 * 3600), "an unacknowledged notification is removed after this long";
    NOTIFICATION_KEPT_READ: Duration = Duration::from_secs(30 * 24 * 3600), "an acknowledged notification is removed after this long";
    RUN_SESSION_KEPT: Duration = Duration::from_secs(30 * 24 * 3600), "longest session of a run; normally the session ends with the run";
    AFTER_REPORT_MAX: Duration = Duration::from_secs(30), "a run that has reported its end has this long to end";
    ENDED_SESSION_KEPT: Duration = Duration::from_secs(30 * 24 * 3600), "an ended session is remembered this long";
    REPORT_CHARS_MAX: usize = 100_000, "characters of the summary of a finished task";
    CHANGES_PER_READ_MAX: u32 = 1_000, "change events that one safety read takes at a time";
}

trait Show {
    fn show(&self) -> String;
}

impl Show for Duration {
    fn show(&self) -> String {
        match self.as_secs() {
            0 => format!("{} ms", self.as_millis()),
            secs if secs % 86_400 == 0 => format!("{} d", secs / 86_400),
            secs if secs % 3_600 == 0 => format!("{} h", secs / 3_600),
            secs if secs > 60 && secs % 60 == 0 => format!("{} min", secs / 60),
            secs => format!("{secs} s"),
        }
    }
}

impl Show for u32 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for u64 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for usize {
    fn show(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_print_with_their_unit() {
        let shown = |name| all().into_iter().find(|limit| limit.name == name).map(|limit| limit.value);
        assert_eq!(shown("HOLD_MAX").as_deref(), Some("50 s"));
        assert_eq!(shown("FOREIGN_POLL_EVERY").as_deref(), Some("50 ms"));
        assert_eq!(shown("IDLE_EXIT").as_deref(), Some("30 min"));
        assert_eq!(shown("TOMBSTONE_KEPT").as_deref(), Some("7 d"));
        assert_eq!(shown("CHILDREN_MAX").as_deref(), Some("10"));
    }
}
