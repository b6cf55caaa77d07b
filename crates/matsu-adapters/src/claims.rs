//! Makers of claims: one file each.

pub mod extractive;
