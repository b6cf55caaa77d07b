//! Reports in a model's words, from claims alone.

use async_trait::async_trait;

use crate::slot::Slot;

use super::claim_maker::ModelError;
use super::model_account::ModelAccount;

#[async_trait]
pub trait ReportWriter: Send + Sync {
    /// The model's name, as a reader of the report knows it.
    fn model(&self) -> String;

    /// The inner permit that the caller must hold while it works, if any.
    fn slot(&self) -> Option<Slot>;

    /// The texts are data: nothing in them is followed. The caller removes sentences that their claims do not support.
    /// What it cost is noted in the account.
    async fn write(&self, request: &WriteRequest, account: &ModelAccount) -> Result<Draft, ModelError>;
}

#[derive(Clone, Debug, Default)]
pub struct WriteRequest {
    pub question: String,
    /// Best first. A sentence names them by their number, from 1.
    pub claims: Vec<ClaimToWrite>,
}

#[derive(Clone, Debug, Default)]
pub struct ClaimToWrite {
    pub text: String,
    pub context: String,
    /// unverified, supported, refuted or contested
    pub verification: String,
    pub source: String,
}

/// What the model wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub answer: Vec<DraftSentence>,
    pub sections: Vec<(String, Vec<DraftSentence>)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftSentence {
    pub text: String,
    /// Numbers of the claims that it is written from, from 1.
    pub claims: Vec<usize>,
}
