//! What goes between the server and its reader processes. A reader that a document has taken over can answer anything.

use matsu_reader::wire::{Request, framed_answer, parse_answer};

use crate::input::choice;

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    if which % 2 == 0 { requests(data) } else { answer(data) }
}

fn requests(data: &[u8]) {
    let mut input = data;
    while let Ok(Some(request)) = Request::read(&mut input) {
        let Ok(head) = request.head() else { panic!("a request that was read cannot be written") };
        let again = Request::read(&mut [head, request.body.clone()].concat().as_slice());
        assert!(again.is_ok_and(|again| again.as_ref() == Some(&request)), "a request that changes on the way");
    }
}

fn answer(data: &[u8]) {
    let Ok(answer) = parse_answer(data) else { return };
    let Ok(framed) = framed_answer(&answer) else { panic!("an answer that was read cannot be written") };
    assert!(parse_answer(&framed[4..]).is_ok_and(|again| again == answer), "an answer that changes on the way");
}
