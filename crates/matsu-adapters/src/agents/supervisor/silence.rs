//! How long a program has printed nothing although it could have. Pure.

/// Counted in ticks, so a machine that sleeps adds nothing.
#[derive(Default)]
pub struct Silence {
    /// Where both streams ended at the last tick.
    ends_before: (u64, u64),
    seconds: u32,
}

impl Silence {
    /// Once a second. Returns the seconds of silence so far; they begin anew with every byte, and while the program
    /// cannot print.
    pub fn tick(&mut self, ends: (u64, u64), may_print: bool) -> u32 {
        let is_silent = may_print && ends == self.ends_before;
        self.seconds = if is_silent { self.seconds.saturating_add(1) } else { 0 };
        self.ends_before = ends;
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_on_either_stream_and_a_program_that_cannot_print_begin_it_anew() {
        let mut silence = Silence::default();
        assert_eq!((silence.tick((0, 0), true), silence.tick((0, 0), true)), (1, 2));
        assert_eq!((silence.tick((0, 1), true), silence.tick((0, 1), true)), (0, 1));
        assert_eq!((silence.tick((9, 1), true), silence.tick((9, 1), true)), (0, 1));
        assert_eq!((silence.tick((9, 1), false), silence.tick((9, 1), true)), (0, 1));
    }
}
