//! The loop itself: ask, run what was asked for, ask again. Every way out goes through [`Drive::end`], which settles
//! whatever was begun, so that the transcript stays valid.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use matsu_core::error_code::ErrorCode;
use matsu_core::history::{Entry, Item, Role, Seen, prune, seen_by, validate};
use matsu_core::ports::provider::{ModelRequest, ModelTurn, Provider, ToolSpec, TurnEnd, Usage};
use matsu_core::ports::tool_source::{Offered, ToolAnswer};

use serde_json::Value;

use super::ask::{Arrived, ask};
use super::bounds::{Bounds, Leave};
use super::event::{AgenticLoopResult, Event, StopReason};
use super::ids;
use super::options::LoopOptions;
use super::repeats::Repeats;
use super::round::{Call, Round, Settled, send_result};
use super::stopwatch::Stopwatch;
use super::stream::Sink;

/// A call whose answer comes later.
struct Late {
    call: Call,
    answer: ToolAnswer,
}

struct Drive {
    provider: Arc<dyn Provider>,
    options: LoopOptions,
    sink: Sink,
    bounds: Bounds,
    /// The caller's entries, and ours after them.
    history: Vec<Entry>,
    /// How many of them are the caller's.
    given: usize,
    iterations: u32,
    usage: Usage,
    /// Absent: neither a price nor the program's own account is known.
    cost_micros: Option<u64>,
    repeats: Repeats,
    final_text: String,
    later: FuturesUnordered<Pin<Box<dyn Future<Output = Late> + Send>>>,
    /// Calls that run on elsewhere and were not answered yet.
    unanswered: Vec<Call>,
    /// Entries at the start of the history that were left out of the last request.
    left_out: usize,
    /// Images that the model was given words for, as far as people know.
    hidden: usize,
}

pub async fn run(
    provider: Arc<dyn Provider>,
    history: Vec<Entry>,
    options: LoopOptions,
    sink: Sink,
) -> AgenticLoopResult {
    let mut drive = Drive {
        bounds: Bounds {
            stopwatch: Stopwatch::new(options.clock, options.time_max),
            time_max: options.time_max,
            cancel: options.cancel.clone(),
        },
        given: history.len(),
        provider,
        options,
        sink,
        history,
        iterations: 0,
        usage: Usage::default(),
        cost_micros: None,
        repeats: Repeats::default(),
        final_text: String::new(),
        later: FuturesUnordered::new(),
        unanswered: Vec::new(),
        left_out: 0,
        hidden: 0,
    };
    let left = drive.turns().await.err();
    if left.as_ref().is_some_and(|left| left.reason == StopReason::Budget)
        && let Some(source) = &drive.options.tools
    {
        source.stop_started().await;
    }
    drive.end(left)
}

impl Drive {
    async fn turns(&mut self) -> Result<(), Leave> {
        validate(&self.history).map_err(|fault| {
            Leave::new(StopReason::Error, ErrorCode::InvalidParams, format!("the history is not valid: {fault}"))
        })?;
        let offered = self.offer().await?;
        for note in &offered.notes {
            self.sink.send(Event::Notice(note.clone()));
        }
        while self.iterations < self.options.iterations_max {
            self.take_late();
            if let Some(words) = self.options.spending.exhausted() {
                return Err(Leave::new(StopReason::Budget, ErrorCode::BudgetExhausted, words));
            }
            let tools = self.tools(&offered);
            let turn = self.ask(&tools).await?;
            let calls = self.keep(turn)?;
            if !calls.is_empty() {
                self.round(&tools, calls).await?;
            } else if !self.await_late().await? {
                return Ok(());
            }
        }
        let words = format!(
            "stopped after {} rounds, the most that one answer may take (chat.turns_max); send \"go on\" to continue",
            self.iterations
        );
        Err(Leave::new(StopReason::MaxIterations, ErrorCode::LoopIterations, words))
    }

    async fn offer(&mut self) -> Result<Offered, Leave> {
        match &self.options.tools {
            None => Ok(Offered::default()),
            Some(source) => self.bounds.run(source.offer()).await,
        }
    }

    fn tools(&self, offered: &Offered) -> Arc<[ToolSpec]> {
        offered.tools.iter().cloned().chain(self.options.outputs.tool()).collect()
    }

    async fn ask(&mut self, tools: &Arc<[ToolSpec]>) -> Result<ModelTurn, Leave> {
        self.iterations += 1;
        let request = self.request(tools);
        let mut arrived = Arrived::default();
        let asked = ask(&*self.provider, &request, self.options.clock, &self.sink, &mut arrived);
        let failed = match self.bounds.run(asked).await {
            Ok(Ok(turn)) => {
                let cost = self.provider.price().map(|price| price.of(turn.usage)).or(arrived.cost_micros);
                self.spend(turn.usage, cost);
                return Ok(turn);
            }
            Ok(Err(error)) => Leave::new(StopReason::Error, error.fault.code(), error.to_string()),
            Err(leave) => leave,
        };
        // Text that came before the answer was cut off is kept; people have read it.
        if !arrived.text.trim().is_empty() {
            self.say(vec![Item::text(arrived.text.clone())]);
            self.final_text = arrived.text;
        }
        Err(failed)
    }

    fn spend(&mut self, usage: Usage, cost: Option<u64>) {
        self.usage = self.usage.plus(usage);
        self.options.spending.add(usage, cost);
        self.cost_micros = match (self.cost_micros, cost) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
    }

    fn request(&mut self, tools: &Arc<[ToolSpec]>) -> ModelRequest {
        let limits = self.provider.limits();
        let described: u64 = tools.iter().map(|tool| tool.tokens).sum();
        let window = limits.context_tokens.saturating_sub(u64::from(limits.output_tokens)).saturating_sub(described);
        let sent = prune(&self.history, window);
        self.announce_left_out(self.history.len() - sent.len());
        let Seen { history: sent, newly_hidden } = seen_by(sent, self.provider.image_types());
        self.announce_hidden(newly_hidden);
        ModelRequest { history: sent.into(), tools: Arc::clone(tools), output: self.options.output.clone() }
    }

    /// A model that does not see an image answers without it; people must know that.
    fn announce_hidden(&mut self, images: usize) {
        if images <= self.hidden {
            return;
        }
        self.hidden = images;
        let name = self.provider.name();
        let counted = if images == 1 { "1 image".to_owned() } else { format!("{images} images") };
        let why = if self.provider.image_types().is_empty() {
            format!("images are not sent to it (providers.{name}.images)")
        } else {
            "it does not accept their type, or they are too many or too large together".to_owned()
        };
        self.sink.send(Event::Notice(format!("{name} does not see {counted}: {why}; it gets a text in their place")));
    }

    /// A model that no longer sees the beginning of a chat answers without it; people must know that.
    fn announce_left_out(&mut self, entries: usize) {
        if entries <= self.left_out {
            return;
        }
        self.left_out = entries;
        let (name, window) = (self.provider.name(), self.provider.limits().context_tokens);
        let words = format!(
            "{name} does not see the oldest {entries} of {} messages: they do not fit into its window of {window} tokens",
            self.history.len()
        );
        self.sink.send(Event::Notice(words));
    }

    fn say(&mut self, items: Vec<Item>) {
        let now = self.options.clock.now();
        self.history.push(Entry::assistant(self.provider.name(), items, now).made_by(self.provider.maker()));
    }

    /// Writes a turn down, and gives back what it wants to have run.
    fn keep(&mut self, turn: ModelTurn) -> Result<Vec<Call>, Leave> {
        let mut items = turn.items;
        ids::settle(&mut items, &self.history, self.options.clock.now());
        let calls: Vec<Call> = items.iter().filter_map(call).collect();
        let text: String = items.iter().filter_map(text).collect();
        let is_empty = items.iter().all(|item| matches!(item, Item::Thinking { .. }));
        if !is_empty {
            self.say(items);
        }
        for call in &calls {
            let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
            self.sink.send(Event::ToolCall { id, name, arguments });
        }
        if calls.is_empty() {
            self.final_text = text;
            self.explain(turn.end, is_empty)?;
        }
        Ok(calls)
    }

    /// An answer that is none, or not whole, is not passed over in silence.
    fn explain(&self, end: TurnEnd, is_empty: bool) -> Result<(), Leave> {
        let name = self.provider.name();
        match (end, is_empty) {
            (TurnEnd::Refused, _) => {
                let words = format!("{name} refused to answer");
                return Err(Leave::new(StopReason::Error, ErrorCode::ProviderRefused, words));
            }
            (TurnEnd::Length, _) => {
                self.sink.send(Event::Notice(format!("{name}'s answer reached the maximum length and was cut")));
            }
            (TurnEnd::Finished | TurnEnd::ToolUse, true) => {
                self.sink.send(Event::Notice(format!("{name} gave no answer")));
            }
            (TurnEnd::Finished | TurnEnd::ToolUse, false) => {}
        }
        Ok(())
    }

    async fn round(&mut self, tools: &[ToolSpec], mut calls: Vec<Call>) -> Result<(), Leave> {
        let mut stuck = None;
        let mut seen: Vec<(String, Value)> = Vec::new();
        for call in &mut calls {
            let this = (call.name.clone(), call.arguments.clone());
            if seen.contains(&this) {
                continue;
            }
            seen.push(this);
            if self.repeats.is_stuck(&call.name, &call.arguments) {
                let words = "the same call with the same arguments and the same answer three times in a row; not run";
                call.refused = Some(words.to_owned());
                stuck = Some(call.name.clone());
            }
        }
        let mut settled: Vec<Option<Settled>> = calls.iter().map(|_| None).collect();
        let round = Round {
            model: self.provider.name(),
            options: &self.options,
            tools,
            stopwatch: &self.bounds.stopwatch,
            sink: &self.sink,
        };
        let ended = self.bounds.run(round.run(&calls, &mut settled)).await;
        self.write_down(calls, settled, ended.as_ref().err());
        ended?;
        match stuck {
            None => Ok(()),
            Some(name) => {
                let words =
                    format!("{name} was called with the same arguments three times in a row, without a new answer");
                Err(Leave::new(StopReason::Error, ErrorCode::LoopRepeats, words))
            }
        }
    }

    /// Results in call order; a call that did not come to its end gets a result that says so.
    fn write_down(&mut self, calls: Vec<Call>, settled: Vec<Option<Settled>>, left: Option<&Leave>) {
        let mut results = Vec::new();
        let first_open = settled.iter().position(Option::is_none).unwrap_or(settled.len());
        for (at, (call, settled)) in calls.into_iter().zip(settled).enumerate() {
            match settled {
                Some(Settled::Later(answer)) => self.follow(call, answer),
                Some(Settled::Answered(answer)) => {
                    self.repeats.answered(&call.name, &call.arguments, &answer.content);
                    // The results after the first unfinished call were not sent yet.
                    if at > first_open {
                        send_result(&self.sink, &call, &answer);
                    }
                    results.push(result(&call, answer));
                }
                None => {
                    let answer = ToolAnswer::error(unsettled(left));
                    send_result(&self.sink, &call, &answer);
                    results.push(result(&call, answer));
                }
            }
        }
        if !results.is_empty() {
            self.history.push(Entry::tool(results, self.options.clock.now()));
        }
    }

    fn follow(&mut self, call: Call, answer: Pin<Box<dyn Future<Output = ToolAnswer> + Send>>) {
        self.sink.send(Event::Notice(format!("{} continues in the background", call.name)));
        self.unanswered.push(call.clone());
        self.later.push(Box::pin(async move { Late { call, answer: answer.await } }));
    }

    /// Takes answers that have come meanwhile.
    fn take_late(&mut self) {
        while let Some(Some(late)) = futures_util::FutureExt::now_or_never(self.later.next()) {
            self.answer_late(late);
        }
    }

    /// Waits for a late answer; false if none is expected.
    async fn await_late(&mut self) -> Result<bool, Leave> {
        let mut later = std::mem::take(&mut self.later);
        let next = self.bounds.run(later.next()).await;
        self.later = later;
        match next? {
            None => Ok(false),
            Some(late) => {
                self.answer_late(late);
                Ok(true)
            }
        }
    }

    fn answer_late(&mut self, late: Late) {
        let Late { call, answer } = late;
        let content = self.options.outputs.shorten(&call.id, answer.content);
        let answer = ToolAnswer { content, ..answer };
        self.unanswered.retain(|open| open.id != call.id);
        send_result(&self.sink, &call, &answer);
        self.history.push(Entry::tool(vec![result(&call, answer)], self.options.clock.now()));
    }

    /// Everything that was begun is settled; nothing that was done is lost.
    fn end(mut self, left: Option<Leave>) -> AgenticLoopResult {
        self.later = FuturesUnordered::new();
        let open: Vec<Call> = std::mem::take(&mut self.unanswered);
        if !open.is_empty() {
            let answer = ToolAnswer::error(unsettled(left.as_ref()));
            for call in &open {
                send_result(&self.sink, call, &answer);
            }
            let results = open.iter().map(|call| result(call, answer.clone())).collect();
            self.history.push(Entry::tool(results, self.options.clock.now()));
        }
        let stop_reason = left.as_ref().map_or(StopReason::EndTurn, |left| left.reason);
        if stop_reason != StopReason::EndTurn {
            let mut own = self.history.iter_mut().skip(self.given);
            if let Some(last) = own.rfind(|entry| entry.role == Role::Assistant) {
                last.cut_by = Some(stop_reason.as_str().to_owned());
            }
        }
        AgenticLoopResult {
            chunks: Vec::new(),
            history_delta: self.history.split_off(self.given),
            final_text: self.final_text,
            iterations_used: self.iterations,
            timed_out: stop_reason == StopReason::Timeout,
            error: left.map(|left| left.error),
            stop_reason,
            usage: self.usage,
            cost_micros: self.cost_micros,
        }
    }
}

fn unsettled(left: Option<&Leave>) -> &'static str {
    match left.map(|left| left.reason) {
        Some(StopReason::Cancelled) => "stopped by a person before it ended; it may have had effects",
        Some(StopReason::Timeout) => "the time of this answer was over before it ended; it may have had effects",
        _ => "given up before it ended; it may have had effects",
    }
}

fn call(item: &Item) -> Option<Call> {
    match item {
        Item::ToolCall { id, name, arguments, .. } => {
            Some(Call { id: id.clone(), name: name.clone(), arguments: arguments.clone(), refused: None })
        }
        _ => None,
    }
}

fn text(item: &Item) -> Option<&str> {
    match item {
        Item::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn result(call: &Call, answer: ToolAnswer) -> Item {
    Item::ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: answer.content,
        is_error: answer.is_error,
        images: answer.images,
    }
}
