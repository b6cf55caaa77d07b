//! Random operations against a simple model, on every backend.
