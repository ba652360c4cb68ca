//! The driver in Java.

use super::{Driver, Guest, Start};
use crate::engine::Result;

pub struct Java;

impl Driver for Java {
    fn name(&self) -> &'static str {
        "Java"
    }
    fn engines(&self) -> &'static [Guest] {
        &[]
    }
    fn version(&self, engine: &str) -> Result<String> {
        Err(format!("the Java driver does not know {engine}"))
    }
    fn start(&self) -> Result<Start> {
        Err("the Java driver is not built: run `halobench setup`".into())
    }
    fn build(&self, _say: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(())
    }
}
