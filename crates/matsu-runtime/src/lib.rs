//! Verbs of Matsu: the one wait, the queue and its workers. Knows ports only.
