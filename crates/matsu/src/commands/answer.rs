//! `matsu answer TASK [OPTION|TEXT]`: answers what a run asks.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::{Context, print_json};
use crate::client::Client;
use crate::terminal::question::{self, Question};

#[derive(Args)]
pub struct AnswerArgs {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// An option or its number, or text if the question has no options; if it is omitted, the command asks you
    pub answer: Option<String>,
    /// Answer in your own words, even if the question has options
    #[arg(long, value_name = "TEXT", conflicts_with = "answer")]
    pub text: Option<String>,
    /// The job that asks, if several jobs ask
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
}

pub async fn run(cx: &Context, args: &AnswerArgs) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let asked = question::open(&client, &args.task).await?;
    let question = meant(&asked, args)?;
    if question.is_consent() {
        question.show();
        bail!("this question cannot be answered here; a person must allow the file in a terminal: matsu allow");
    }
    let answer = match (&args.answer, &args.text) {
        (Some(typed), _) => question.answer(typed)?,
        (None, Some(text)) => question.in_words(text)?,
        (None, None) if question::can_ask() && !cx.json => match question.ask().await {
            Some(answer) => answer,
            None => bail!("no answer was typed"),
        },
        (None, None) => {
            question.show();
            bail!("stdin is not a terminal; give the answer: {}", question.how(&args.task, asked.len() > 1));
        }
    };
    question::send(&client, &args.task, answer.clone()).await?;
    if cx.json {
        print_json(&json!({ "ok": true, "task_id": args.task, "answer": answer }));
    } else {
        say!("Answered. Wait for the result with: matsu status {} --wait", args.task);
    }
    Ok(ExitCode::SUCCESS)
}

/// The question that is answered: the only one, or that of the job that was named.
fn meant<'a>(asked: &'a [Question], args: &AnswerArgs) -> Result<&'a Question> {
    let meant: Vec<&Question> =
        asked.iter().filter(|question| args.job.as_ref().is_none_or(|job| question.job == *job)).collect();
    match meant.as_slice() {
        [only] => Ok(only),
        [] if asked.is_empty() => bail!("{} asks no question at the moment", args.task),
        [] => bail!("the job {} asks no question at the moment", args.job.as_deref().unwrap_or_default()),
        several => {
            question::show_all(&args.task, asked);
            bail!("{} jobs ask a question; name one with --job", several.len())
        }
    }
}
