//! The driver in Go.

use super::{Driver, Guest, Start};
use crate::engine::Result;

pub struct Go;

impl Driver for Go {
    fn name(&self) -> &'static str {
        "Go"
    }
    fn engines(&self) -> &'static [Guest] {
        &[]
    }
    fn version(&self, engine: &str) -> Result<String> {
        Err(format!("the Go driver does not know {engine}"))
    }
    fn start(&self) -> Result<Start> {
        Err("the Go driver is not built: run `halobench setup`".into())
    }
    fn build(&self, _say: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(())
    }
}
