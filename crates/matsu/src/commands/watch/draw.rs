//! The full screen, drawn: a head, the list, and what the keys do.

use matsu_core::clock::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::board::{self, Board};
use crate::terminal::table;

const KEYS: &str = "Enter open · f follow · a answer · r review · c cancel · t all or new · q quit";

pub fn draw(frame: &mut Frame<'_>, board: &Board, now: Timestamp, has_colours: bool) {
    let [head, list, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    let counts = format!(
        "Matsu · {} under way · {} asking · {} unread{}",
        board.count(board::is_open),
        board.count(board::is_asking),
        board.count(board::is_unread),
        if board.is_short { " · tasks that were read are hidden" } else { "" }
    );
    frame.render_widget(Line::styled(counts, Style::new().add_modifier(Modifier::BOLD)), head);

    let shown = board.shown();
    if shown.is_empty() {
        frame.render_widget(Paragraph::new("No tasks."), list);
    } else {
        let rows = shown.iter().map(|task| {
            let table::Row { mut cells, state } = table::row(task, Some(now));
            // The id is what commands take; here the bar does, so it stands last.
            let id = cells.remove(0);
            cells.push(id);
            Row::new(cells.into_iter().map(Cell::from)).style(if has_colours { colour(&state) } else { Style::new() })
        });
        let widths = [
            Constraint::Length(14),
            Constraint::Length(7),
            Constraint::Length(12),
            Constraint::Length(12),
            Constraint::Fill(1),
            Constraint::Length(31),
        ];
        let head = Row::new(["STATE", "AGE", "AGENT", "WAITS FOR", "TITLE", "TASK"]);
        let table = Table::new(rows, widths).header(head.style(Style::new().add_modifier(Modifier::DIM)));
        let bar = Style::new().add_modifier(Modifier::REVERSED);
        let mut state = TableState::default().with_selected(board.at());
        frame.render_stateful_widget(table.row_highlight_style(bar), list, &mut state);
    }
    let words = match (&board.confirms, &board.message) {
        (Some(task), _) => format!("Cancel {task}? y: yes, any other key: no"),
        (None, Some(message)) => message.clone(),
        (None, None) => KEYS.to_owned(),
    };
    frame.render_widget(Line::styled(words, Style::new().add_modifier(Modifier::DIM)), foot);
}

/// As in `matsu tasks`.
fn colour(state: &str) -> Style {
    match state {
        "failed" => Style::new().fg(Color::Red),
        "input_required" => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        "running" => Style::new().fg(Color::Green),
        "cancelled" => Style::new().add_modifier(Modifier::DIM),
        "queued" | "paused" | "blocked" => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;
    use crate::commands::watch::board::Key;

    fn screen(board: &Board, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, board, Timestamp::from_millis(60_000), true)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn tasks_are_shown_without_what_a_terminal_would_obey() {
        let mut board = Board::default();
        board.replace(vec![json!({
            "task_id": "task_1", "kind": "agent", "status": "input_required", "unread": false, "revision": 1,
            "agents": ["claude"], "assignee": null, "created_at": "1970-01-01T00:00:00Z", "finished_at": null,
            "title": "claude: fix \u{1b}[2J it", "jobs": { "awaiting_input": 1 },
        })]);
        let shown = screen(&board, 120, 6);
        assert!(shown.contains("1 under way · 1 asking · 0 unread"), "{shown}");
        assert!(
            shown.contains("input_required") && shown.contains("your answer") && shown.contains("task_1"),
            "{shown}"
        );
        assert!(shown.contains("fix it") && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.contains("Enter open"), "{shown}");
        board.press(Key::Letter('c'));
        assert!(screen(&board, 120, 6).contains("Cancel task_1? y: yes"), "{shown}");
        // However small the terminal is, drawing does not fail.
        for (width, height) in [(1, 1), (10, 2), (20, 3)] {
            screen(&board, width, height);
        }
    }
}
