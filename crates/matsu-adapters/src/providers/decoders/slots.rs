//! Tool calls that arrive in pieces. Gateways number them from 0, from 1, all with 0, or not at all.

use matsu_core::history::Item;
use serde_json::Value;

use super::{arguments, call, text_at};

#[derive(Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    text: String,
}

/// Calls under way, in the order they began.
#[derive(Default)]
pub struct Slots(Vec<Slot>);

impl Slots {
    /// Takes one piece of the list `tool_calls`.
    pub fn feed(&mut self, piece: &Value) {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = text_at(piece, "/id").unwrap_or_default();
        let name = text_at(piece, "/function/name").unwrap_or_default();
        let at = match self.place(index, id, name) {
            Some(at) => at,
            None => {
                self.0.push(Slot { index, ..Slot::default() });
                self.0.len() - 1
            }
        };
        let Some(slot) = self.0.get_mut(at) else { return };
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        if slot.name.is_empty() {
            name.clone_into(&mut slot.name);
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(text)) => slot.text.push_str(text),
            None | Some(Value::Null) => {}
            Some(whole) => slot.text = whole.to_string(),
        }
    }

    /// The slot that a piece belongs to; `None`: it opens a new one.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let last = |wanted: Option<u64>| self.0.iter().rposition(|slot| slot.index == wanted);
        match index {
            Some(_) => {
                let at = last(index)?;
                let slot = self.0.get(at)?;
                let other_id = !id.is_empty() && !slot.id.is_empty() && slot.id != id;
                // Without ids, a name after whole arguments at the same index can only be the next call.
                let next_call = id.is_empty() && !name.is_empty() && slot.is_whole();
                (!other_id && !next_call).then_some(at)
            }
            None if !id.is_empty() => self.0.iter().rposition(|slot| slot.id == id),
            None if !name.is_empty() => None,
            None => self.0.len().checked_sub(1),
        }
    }

    pub fn into_items(self) -> Vec<Item> {
        let named = self.0.into_iter().filter(|slot| !slot.name.is_empty());
        named.map(|slot| call(&slot.id, &slot.name, arguments(&slot.text), None)).collect()
    }
}

impl Slot {
    fn is_whole(&self) -> bool {
        !self.name.is_empty() && serde_json::from_str::<Value>(&self.text).is_ok_and(|value| value.is_object())
    }
}
