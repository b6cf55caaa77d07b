//! Streams that vendors and gateways really send, and any bytes at all.

use futures_util::StreamExt;
use matsu_core::history::Item;
use matsu_core::ports::provider::{ModelEvent, ModelTurn, ProviderFault, TurnEnd};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::providers::exchange::{events, lines};
use crate::providers::refusal::Fault;
use crate::providers::wire::{Framing, Progress, WIRES, Wire};

fn wire(name: &str) -> &'static dyn Wire {
    *WIRES.iter().find(|wire| wire.name() == name).unwrap()
}

/// The turn that these pieces make, and the text that was shown on the way.
fn read(name: &str, pieces: &[Value]) -> Result<(String, ModelTurn), Fault> {
    let mut decoder = wire(name).decoder();
    let (mut out, mut text) = (Vec::new(), String::new());
    for piece in pieces {
        let piece = piece.as_str().map_or_else(|| piece.to_string(), str::to_owned);
        let progress = decoder.feed(&piece, &mut out)?;
        for event in out.drain(..) {
            if let ModelEvent::Text(piece) = event {
                text.push_str(&piece);
            }
        }
        if progress == Progress::Complete {
            break;
        }
    }
    Ok((text, decoder.finish()?))
}

/// Ids, names and arguments of the calls of a turn.
fn calls(turn: &ModelTurn) -> Vec<(String, String, Value)> {
    let calls = turn.items.iter().filter_map(|item| match item {
        Item::ToolCall { id, name, arguments, .. } => Some((id.clone(), name.clone(), arguments.clone())),
        _ => None,
    });
    calls.collect()
}

fn chat(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn chat_end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn piece(index: Value, id: Value, name: Value, arguments: &str) -> Value {
    let mut call = json!({ "function": { "arguments": arguments } });
    for (field, value) in [("index", index), ("id", id)] {
        if !value.is_null() {
            call[field] = value;
        }
    }
    if !name.is_null() {
        call["function"]["name"] = name;
    }
    chat(json!({ "tool_calls": [call] }))
}

#[test]
fn interleaved_parallel_calls_keep_their_own_pieces() {
    let n = Value::Null;
    let pieces = [
        piece(json!(0), json!("a"), json!("look"), ""),
        piece(json!(1), json!("b"), json!("look"), ""),
        piece(json!(0), n.clone(), n.clone(), "{\"q\":"),
        piece(json!(1), n.clone(), n.clone(), "{\"q\":2"),
        piece(json!(0), n.clone(), n.clone(), "1}"),
        piece(json!(1), n.clone(), n, "}"),
        chat_end("tool_calls"),
    ];
    let (_, turn) = read("openai_chat", &pieces).unwrap();
    let wanted = [("a".into(), "look".into(), json!({"q": 1})), ("b".into(), "look".into(), json!({"q": 2}))];
    assert_eq!(calls(&turn), wanted);
    assert_eq!(turn.end, TurnEnd::ToolUse);
}

#[test]
fn calls_are_distinguished_however_a_gateway_numbers_them() {
    let n = Value::Null;
    let numbered: &[(&str, [Value; 2], [Value; 2])] = &[
        ("from 1", [json!(1), json!(2)], [json!("a"), json!("b")]),
        ("all 0", [json!(0), json!(0)], [json!("a"), json!("b")]),
        ("absent", [n.clone(), n.clone()], [json!("a"), json!("b")]),
        ("all 0 and no ids", [json!(0), json!(0)], [n.clone(), n.clone()]),
        ("nothing at all", [n.clone(), n.clone()], [n.clone(), n.clone()]),
    ];
    for (case, index, ids) in numbered {
        let pieces: Vec<Value> = (0..2)
            .flat_map(|nth| {
                let (index, text) = (index[nth].clone(), format!("{{\"n\":{nth}}}"));
                let (head, tail) = text.split_at(4);
                [
                    piece(index.clone(), ids[nth].clone(), json!("look"), head),
                    piece(index, Value::Null, Value::Null, tail),
                ]
            })
            .chain([chat_end("tool_calls")])
            .collect();
        let (_, turn) = read("openai_chat", &pieces).unwrap();
        let arguments: Vec<Value> = calls(&turn).into_iter().map(|call| call.2).collect();
        assert_eq!(arguments, [json!({"n": 0}), json!({"n": 1})], "{case}");
    }
}

#[test]
fn chat_needs_its_finish_reason_and_no_done() {
    let said = chat(json!({ "content": "Hi" }));
    assert_eq!(read("openai_chat", &[said.clone(), chat_end("stop")]).unwrap().0, "Hi");
    let cut = read("openai_chat", &[said.clone(), json!("[DONE]")]).unwrap_err();
    assert_eq!(cut.kind, ProviderFault::Truncated);
    assert_eq!(read("openai_chat", &[said]).unwrap_err().kind, ProviderFault::Truncated);
}

#[test]
fn an_error_that_is_null_is_none() {
    let mut said = chat(json!({ "content": "Hi" }));
    said["error"] = Value::Null;
    assert_eq!(read("openai_chat", &[said, chat_end("stop")]).unwrap().0, "Hi");
    let failed = json!({ "error": { "message": "slow down", "type": "rate_limit_error" } });
    assert_eq!(read("openai_chat", &[failed]).unwrap_err().kind, ProviderFault::RateLimited { after: None });
}

#[test]
fn usage_may_come_last_and_tool_use_without_a_call_is_an_answer() {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 9, "completion_tokens": 2,
        "prompt_tokens_details": { "cached_tokens": 4 } } });
    let (text, turn) =
        read("openai_chat", &[chat(json!({ "content": "ok" })), chat_end("tool_calls"), usage, json!("[DONE]")])
            .unwrap();
    assert_eq!((text.as_str(), turn.usage.input_tokens, turn.usage.cached_tokens), ("ok", 9, 4));
    assert_eq!(calls(&turn), []);
}

#[test]
fn absent_and_malformed_arguments_are_distinguished() {
    let none = [piece(json!(0), json!("a"), json!("look"), ""), chat_end("tool_calls")];
    assert_eq!(calls(&read("openai_chat", &none).unwrap().1)[0].2, json!({}));
    let spoilt = [piece(json!(0), json!("a"), json!("look"), "{\"q\": "), chat_end("tool_calls")];
    assert_eq!(calls(&read("openai_chat", &spoilt).unwrap().1)[0].2, json!("{\"q\": "));
}

fn block(index: u64, kind: &str, more: Value) -> Vec<Value> {
    let mut start = json!({ "type": kind });
    for (name, value) in more.as_object().unwrap() {
        start[name] = value.clone();
    }
    vec![json!({ "type": "content_block_start", "index": index, "content_block": start })]
}

fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

#[test]
fn anthropic_thoughts_calls_and_counts() {
    let mut pieces = vec![json!({ "type": "message_start", "message": { "usage": {
        "input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1 } } })];
    pieces.extend(block(0, "thinking", json!({ "thinking": "", "signature": "" })));
    pieces.push(delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })));
    pieces.push(delta(0, json!({ "type": "signature_delta", "signature": "c2ln/+==" })));
    pieces.extend(block(1, "redacted_thinking", json!({ "data": "sealed" })));
    pieces.extend(block(2, "text", json!({ "text": "" })));
    pieces.push(delta(2, json!({ "type": "text_delta", "text": "Hi" })));
    pieces.extend(block(3, "tool_use", json!({ "id": "toolu_1", "name": "look", "input": {} })));
    pieces.push(json!({ "type": "ping" }));
    pieces.push(delta(3, json!({ "type": "input_json_delta", "partial_json": "{\"q\"" })));
    pieces.push(delta(3, json!({ "type": "input_json_delta", "partial_json": ":1}" })));
    pieces.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 20 } }),
    );
    let cut = read("anthropic", &pieces).unwrap_err();
    assert_eq!(cut.kind, ProviderFault::Truncated);
    pieces.push(json!({ "type": "message_stop" }));
    let (text, turn) = read("anthropic", &pieces).unwrap();
    assert_eq!(text, "Hi");
    assert_eq!((turn.usage.input_tokens, turn.usage.cached_tokens, turn.usage.output_tokens), (7, 4, 20));
    assert_eq!(turn.items[0], Item::Thinking { text: "hm".into(), signature: Some("c2ln/+==".into()), native: None });
    let sealed = json!({ "type": "redacted_thinking", "data": "sealed" });
    assert_eq!(turn.items[1], Item::Thinking { text: String::new(), signature: None, native: Some(sealed) });
    assert_eq!(calls(&turn), [("toolu_1".into(), "look".into(), json!({"q": 1}))]);
}

#[test]
fn an_overloaded_vendor_inside_a_stream_is_worth_another_try() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    assert!(read("anthropic", &[error]).unwrap_err().kind.is_transient());
}

fn gemini(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] })
}

#[test]
fn gemini_calls_of_one_tool_stay_apart_in_one_chunk_and_in_two() {
    let one = json!({ "functionCall": { "name": "look", "args": { "n": 1 } }, "thoughtSignature": "sig1" });
    let two = json!({ "functionCall": { "name": "look", "args": { "n": 2 } } });
    let end = json!({ "candidates": [{ "content": { "parts": [] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 2 } });
    let together = [gemini(json!([one, two])), end.clone()];
    let apart = [gemini(json!([one])), gemini(json!([two])), end];
    for pieces in [&together[..], &apart[..]] {
        let (_, turn) = read("gemini", pieces).unwrap();
        let arguments: Vec<Value> = calls(&turn).into_iter().map(|call| call.2).collect();
        assert_eq!(arguments, [json!({"n": 1}), json!({"n": 2})]);
        assert!(matches!(&turn.items[0], Item::ToolCall { signature: Some(sign), .. } if sign == "sig1"));
        assert_eq!((turn.end, turn.usage.output_tokens), (TurnEnd::ToolUse, 5));
    }
}

#[test]
fn gemini_signs_parts_and_says_why_it_refuses() {
    let signed = json!({ "text": "", "thoughtSignature": "s2" });
    let end = json!({ "candidates": [{ "finishReason": "SAFETY" }] });
    let pieces = [
        gemini(json!([{ "text": "hm", "thought": true }, { "text": "A" }])),
        gemini(json!([{ "text": "B" }, signed])),
        end,
    ];
    let (text, turn) = read("gemini", &pieces).unwrap();
    assert_eq!((text.as_str(), turn.end), ("AB", TurnEnd::Refused));
    assert_eq!(turn.items[2], Item::Text { text: String::new(), signature: Some("s2".into()) });
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    let fault = read("gemini", &[blocked]).unwrap_err();
    assert_eq!((fault.kind, fault.message.as_str()), (ProviderFault::Refused, "the prompt was blocked: SAFETY"));
    let cut = read("gemini", &[gemini(json!([{ "text": "A" }]))]).unwrap_err();
    assert_eq!(cut.kind, ProviderFault::Truncated);
}

#[test]
fn responses_items_come_whole_and_sealed_reasoning_word_for_word() {
    let sealed = json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }],
        "encrypted_content": "gAAA" });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "look", "arguments": "" });
    let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] });
    let done =
        |index: u64, item: &Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let mut pieces = vec![
        json!({ "type": "response.output_text.delta", "delta": "Hi" }),
        done(2, &call),
        done(0, &sealed),
        done(1, &message),
    ];
    assert_eq!(read("openai", &pieces).unwrap_err().kind, ProviderFault::Truncated);
    pieces.push(
        json!({ "type": "response.completed", "response": { "usage": { "input_tokens": 4, "output_tokens": 2 } } }),
    );
    let (text, turn) = read("openai", &pieces).unwrap();
    assert_eq!((text.as_str(), turn.usage.input_tokens), ("Hi", 4));
    assert_eq!(turn.items[0], Item::Thinking { text: "hm".into(), signature: None, native: Some(sealed) });
    assert_eq!(calls(&turn), [("call_9".into(), "look".into(), json!({}))]);
    assert_eq!(turn.end, TurnEnd::ToolUse);
}

#[test]
fn a_failed_response_keeps_its_words() {
    let failed = json!({ "type": "response.failed", "response": { "error": { "code": "rate_limit_exceeded", "message": "slow" } } });
    let fault = read("openai", &[failed]).unwrap_err();
    assert_eq!((fault.kind, fault.message.as_str()), (ProviderFault::RateLimited { after: None }, "slow"));
    let error = json!({ "type": "error", "code": "server_error", "message": "oh" });
    assert_eq!(read("openai", &[error]).unwrap_err().kind, ProviderFault::Server { after: None });
}

#[test]
fn ollama_lines_make_a_turn() {
    let pieces = [
        json!({ "message": { "role": "assistant", "content": "Hi" }, "done": false }),
        json!({ "message": { "content": "", "tool_calls": [
            { "function": { "name": "look", "arguments": { "n": 1 } } },
            { "function": { "name": "look", "arguments": { "n": 2 } } }] }, "done": false }),
        json!({ "message": { "content": "" }, "done": true, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2 }),
    ];
    let (text, turn) = read("ollama", &pieces).unwrap();
    assert_eq!((text.as_str(), calls(&turn).len(), turn.usage.total()), ("Hi", 2, 5));
    assert_eq!(read("ollama", &pieces[..2]).unwrap_err().kind, ProviderFault::Truncated);
}

/// What comes out of a stream of these bytes, cut into chunks of that many.
fn framed(framing: Framing, bytes: &[u8], size: usize) -> Vec<Result<String, Fault>> {
    let chunks: Vec<Result<Vec<u8>, Fault>> = bytes.chunks(size).map(|chunk| Ok(chunk.to_vec())).collect();
    let stream = Box::pin(futures_util::stream::iter(chunks));
    let pieces = if framing == Framing::Lines { lines(stream) } else { events(stream) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(pieces.collect())
}

#[test]
fn five_byte_chunks_crlf_and_comments_change_nothing() {
    let text = ": hello\r\n\r\nevent: x\r\ndata: {\"天気\":\"晴れ\"}\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n";
    for size in [1, 5, 7, 1_000] {
        let pieces: Vec<String> =
            framed(Framing::ServerSentEvents, text.as_bytes(), size).into_iter().flatten().collect();
        assert_eq!(pieces, ["{\"天気\":\"晴れ\"}", "[DONE]"], "{size}");
        let pieces: Vec<String> =
            framed(Framing::Lines, "{\"天\":1}\r\n\n{\"気\":2}".as_bytes(), size).into_iter().flatten().collect();
        assert_eq!(pieces, ["{\"天\":1}", "{\"気\":2}"], "{size}");
    }
}

/// JSON of any shape, with the words of the protocols among its keys.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "choices",
        "delta",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "id",
        "index",
        "error",
        "candidates",
        "content",
        "parts",
        "functionCall",
        "message",
        "usage",
        "response",
        "item",
        "output",
        "done",
        "content_block",
        "finish_reason",
        "finishReason",
        "text",
        "summary",
    ]);
    let types = prop::sample::select(vec![
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "response.completed",
        "error",
        "response.output_item.done",
        "response.failed",
        "tool_use",
        "thinking",
        "text_delta",
        "input_json_delta",
        "stop",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        ".{0,6}".prop_map(Value::String),
        types.prop_map(|word| json!(word)),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((words.clone(), inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_panics_a_decoder(pieces in prop::collection::vec(any_json(), 0..6)) {
        for wire in WIRES {
            let _ = read(wire.name(), &pieces);
        }
    }

    #[test]
    fn no_bytes_panic_a_stream(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..20) {
        for wire in WIRES {
            let mut decoder = wire.decoder();
            for piece in framed(wire.framing(), &bytes, size).into_iter().flatten() {
                if decoder.feed(&piece, &mut Vec::new()).is_err() {
                    break;
                }
            }
            let _ = decoder.finish();
        }
    }
}
