//! A reader for tests that are about something else: it parses where it is called.

use async_trait::async_trait;
use matsu_core::ports::extractor::ExtractError;
use matsu_reader::wire::{ReaderReply, Request};

use super::DocumentReader;

pub struct InProcess;

#[async_trait]
impl DocumentReader for InProcess {
    async fn ask(&self, request: Request) -> Result<ReaderReply, ExtractError> {
        matsu_reader::answer(&request)
    }
}
