pub mod worker;
use crate::failure::Outcome;
pub fn run(_args: &crate::args::Demo) -> Outcome {
    todo!()
}
