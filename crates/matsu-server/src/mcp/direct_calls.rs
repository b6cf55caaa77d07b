//! Tool calls that the task which reads a connection runs itself.
//!
//! The SDK runs each request in a task of its own and sends each reply from another one. Most calls take less time than
//! these changes of task, which also wake a second thread. What is checked and answered is the same: a call goes through
//! the SDK's own `handle_request`.
#![expect(clippy::disallowed_methods, reason = "calls that are open when their connection ends are run to their end")]

use std::collections::HashMap;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use matsu_runtime::polled::Polled;
use rmcp::model::{ClientRequest, GetExtensions, GetMeta, JsonRpcMessage, RequestId};
use rmcp::service::{RequestContext, TxJsonRpcMessage};
use rmcp::{RoleServer, Service};
use tokio_util::sync::CancellationToken;

use super::McpHandler;

type RunningCall = Pin<Box<dyn Future<Output = (RequestId, TxJsonRpcMessage<RoleServer>)> + Send>>;

pub(super) struct DirectCalls {
    handler: McpHandler,
    /// Ends the waits of all calls.
    ended: CancellationToken,
    /// Of calls that are to be answered.
    tokens: HashMap<RequestId, CancellationToken>,
    open: Polled<FuturesUnordered<RunningCall>>,
}

impl DirectCalls {
    pub fn new(handler: McpHandler, ended: CancellationToken) -> Self {
        Self { handler, ended, tokens: HashMap::new(), open: Polled::new(FuturesUnordered::new()) }
    }

    /// Starts a call. The first call of a connection is returned: the SDK must run it, because only the SDK can make the
    /// peer that calls send their progress to.
    pub fn start(&mut self, mut request: ClientRequest, id: RequestId) -> Option<(ClientRequest, RequestId)> {
        let Some(peer) = self.handler.peer() else { return Some((request, id)) };
        let mut context = RequestContext::new(id.clone(), peer.clone());
        context.ct = self.ended.child_token();
        std::mem::swap(&mut context.meta, request.get_meta_mut());
        std::mem::swap(&mut context.extensions, request.extensions_mut());
        self.tokens.insert(id.clone(), context.ct.clone());
        let handler = self.handler.clone();
        self.open.stream().push(Box::pin(async move {
            let answer = match handler.handle_request(request, context).await {
                Ok(result) => JsonRpcMessage::response(result, id.clone()),
                Err(error) => JsonRpcMessage::error(error, Some(id.clone())),
            };
            (id, answer)
        }));
        None
    }

    /// The client has cancelled a request: its waits end, and it is not answered.
    pub fn cancel(&mut self, id: &RequestId) {
        if let Some(token) = self.tokens.remove(id) {
            token.cancel();
        }
    }

    /// The next answer that is to be sent; none if no call is open.
    pub async fn next(&mut self) -> Option<TxJsonRpcMessage<RoleServer>> {
        while let Some((id, answer)) = self.open.next().await {
            if let Some(token) = self.tokens.remove(&id) {
                token.cancel();
                return Some(answer);
            }
        }
        None
    }

    /// Does something while the calls go on.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.open.beside(work).await
    }
}

impl Drop for DirectCalls {
    /// A client that disconnects ends its waits, and never what it has started.
    fn drop(&mut self) {
        for token in self.tokens.values() {
            token.cancel();
        }
        let mut open = std::mem::take(self.open.stream());
        if !open.is_empty() && tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(async move { while open.next().await.is_some() {} });
        }
    }
}
