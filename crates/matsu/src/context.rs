//! What every command is given.

use crate::config::Config;

pub struct Context {
    pub config: Config,
    pub json: bool,
}
