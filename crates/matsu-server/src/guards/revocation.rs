//! Ends what is open under a token that holds no longer.

use std::time::Duration;

use crate::app::App;
use crate::auth::open_calls::Kind;
use matsu_runtime::chats::sessions::Sessions;

/// How often the store is asked whether what is open may stay so.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Asks the store again and again, until the app ends.
pub async fn watch(app: App) {
    let clock = *app.runtime().clock();
    while clock.within(LOOK_EVERY, app.shutdown().cancelled()).await.is_none() {
        for (hash, kind) in app.open_calls().hashes() {
            let is_live = match kind {
                Kind::Token => app.tokens().is_live(&hash).await,
                Kind::Session => Sessions::of(app.runtime()).is_session_live(&hash).await,
            };
            // A store that does not answer now is asked again.
            if let Ok(false) = is_live {
                tracing::info!(
                    "a token was revoked, has expired, or its session has ended; its open requests are ended"
                );
                app.open_calls().end(&hash);
            }
        }
    }
}
