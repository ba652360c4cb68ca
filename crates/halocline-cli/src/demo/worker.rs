use crate::failure::Outcome;
pub fn run(_args: &crate::args::DemoWorker) -> Outcome {
    todo!()
}
