//! Research: the nouns of the evidence graph, and every decision about them that needs no I/O.
//!
//! Numbers that clients see are made here and nowhere else, so that a table test can hold them.

pub mod address;
pub mod agreement;
pub mod auth;
pub mod breaker;
pub mod calibration;
pub mod closeness;
pub mod confidence;
pub mod document;
pub mod domain_rule;
pub mod evidence;
pub mod fingerprint;
pub mod headings;
pub mod merge;
pub mod novelty;
pub mod passages;
pub mod query;
pub mod quote;
pub mod ranking;
pub mod report;
pub mod satisfaction;
pub mod search;
pub mod sentences;
pub mod stance;
