//! Research on a web in memory and paused time: the pipeline, its budgets, logins, stops and corrections.

mod corrections;
mod ends;
mod flow;
mod lab;
mod logins;
