//! Questions of a run: it parks until a person has answered.

use std::time::Duration;

use matsu_core::ports::agent::RunEvent;
use matsu_core::ports::store::StoreError;
use matsu_core::run::{Answer, Question, QuestionPlace};

use super::Run;
use crate::agents::Agents;
use crate::agents::answers::answer_to;
use crate::agents::live_runs::LiveRuns;
use crate::stop_signal::StopLevel;

/// How long an answer is looked for that is stored already.
const ANSWER_READ_WITHIN: Duration = Duration::from_millis(250);

/// What ends the wait for an answer.
enum ParkEnd {
    Answer(Answer),
    /// It must stop, or has ended by itself.
    Stop,
    /// This process ends, and the run does not.
    Leave,
    /// How long its program still has to leave.
    SessionOver(Duration),
}

impl Run {
    /// Parks until a person has answered, the program has ended by itself, or it must stop: by a word, or by the
    /// end of its session. Until then the question counts as unread, so that the next owner asks it again.
    pub(super) async fn asked(&mut self, question: Question, position: u64) {
        self.caught_up().await;
        let place = QuestionPlace { run: self.own.run_id().clone(), position, agents_id: question.id };
        // The daemon before this one has passed its answer on.
        if self.checkpoint.questions.is_answered(&place) {
            self.reached = self.reached.max(position);
            return;
        }
        let question = Question { id: self.checkpoint.questions.id_for(&place), ..question };
        let Ok(text) = serde_json::to_string(&question) else { return };
        self.live.set_parked(true);
        let answered = self.answered(&question, &text).await;
        // The time of a run that is left and still asks goes on standing still.
        if !matches!(answered, Ok(ParkEnd::Leave)) {
            self.live.set_parked(false);
        }
        match answered {
            Ok(ParkEnd::Answer(answer)) => {
                let answer = Answer { id: place.agents_id.clone(), ..answer };
                // A call of its own chat that waits for this answer is decided here: the run itself may not.
                if let Some(run) = self.cx.runtime().part::<LiveRuns>().by_id(self.own.run_id()) {
                    Agents::of(self.cx.runtime()).answered(&run, &answer).await;
                }
                self.live.answer(&answer).await;
                self.checkpoint.questions.answered(question.id, place);
                self.is_remembered = false;
                self.remember().await;
                let words = answer.option.as_deref().or(answer.text.as_deref()).unwrap_or_default();
                self.answered = Some(format!("You had asked: {} The answer is: {words}", question.text));
            }
            Ok(ParkEnd::SessionOver(patience)) => self.session_over(patience),
            // A run that is held back while it asks does not go on without an answer.
            Ok(ParkEnd::Stop) if self.cx.stop.level() == StopLevel::Yield => self.end(),
            // It is left; the next owner asks again.
            Ok(ParkEnd::Leave) => {
                self.is_left = true;
                return;
            }
            // It has ended, or the next look at the stop signal ends it.
            Ok(ParkEnd::Stop) => {}
            Err(error) => {
                tracing::debug!(job.id = %self.cx.lease.job_id, %error, "a question could not be asked");
                self.end();
            }
        }
        self.reached = self.reached.max(position);
    }

    async fn answered(&mut self, question: &Question, text: &str) -> Result<ParkEnd, StoreError> {
        let (cx, outlives) = (self.cx.clone(), self.outlives);
        let (live, backlog, listens_for) = (&mut self.live, &mut self.backlog, self.listens_for);
        let (own, is_session_over) = (&mut self.own, self.is_session_over);
        let clock = *cx.runtime().clock();
        let answer = async {
            loop {
                tokio::select! {
                    biased;
                    word = cx.stop.at_least(StopLevel::Shutdown), if outlives => {
                        return if word == StopLevel::Shutdown { ParkEnd::Leave } else { ParkEnd::Stop };
                    }
                    answer = answer_to(&cx, question) => return ParkEnd::Answer(answer),
                    _ = cx.stop.at_least(listens_for) => return ParkEnd::Stop,
                    patience = own.over(), if !is_session_over => return ParkEnd::SessionOver(patience),
                    event = live.next() => {
                        let is_end = matches!(event, RunEvent::Ended(_));
                        backlog.push_back((event, live.position()));
                        if is_end {
                            // It may have been answered while no daemon ran; the next program must get it.
                            let answer = clock.within(ANSWER_READ_WITHIN, answer_to(&cx, question)).await;
                            return answer.map_or(ParkEnd::Stop, ParkEnd::Answer);
                        }
                    }
                }
            }
        };
        // A run that is left still asks: its question can be answered while no daemon runs.
        cx.ask_or_leave(text, answer, |end| matches!(end, ParkEnd::Leave)).await
    }
}
