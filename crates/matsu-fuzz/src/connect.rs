//! Files of the binary, which is no library.

#[expect(dead_code, reason = "the binary uses the rest")]
#[path = "../../matsu/src/connect/clients.rs"]
pub mod clients;
#[path = "../../matsu/src/connect/json_text.rs"]
pub mod json_text;
#[expect(dead_code, reason = "the binary uses the rest")]
#[path = "../../matsu/src/connect/pieces.rs"]
pub mod pieces;
