//! The first line of a connection to the socket, and the line that answers it.

use matsu_runtime::dispatch::presets::Offer;
use matsu_server::mcp::socket::{Greeting, Preamble};
use matsu_server::peer::is_of_supervisor;
use serde_json::Value;

pub fn run(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    if let Ok(preamble) = serde_json::from_str::<Preamble>(line) {
        let _ = Offer::parse(&preamble.tools);
        let Ok(written) = serde_json::to_value(&preamble) else { panic!("a preamble that cannot be written") };
        let again = serde_json::from_value::<Preamble>(written.clone());
        let again = again.ok().and_then(|again| serde_json::to_value(again).ok());
        assert_eq!(again.as_ref(), Some(&written), "a preamble that changes on the way");
        assert!(!is_of_supervisor(&written.to_string()), "a relay that is taken for the supervisor of a run");
    }
    if is_of_supervisor(line) {
        let fields = serde_json::from_str::<Value>(line);
        assert!(fields.is_ok_and(|fields| fields["matsu_run"].is_string() || fields.is_array()), "{line}");
    }
    if let Ok(greeting) = serde_json::from_str::<Greeting>(line) {
        assert!(serde_json::to_string(&greeting).is_ok_and(|line| !line.contains('\n')));
    }
}
