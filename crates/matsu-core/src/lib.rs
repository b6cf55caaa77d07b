//! Nouns, pure decisions and port traits of Matsu. No I/O.
