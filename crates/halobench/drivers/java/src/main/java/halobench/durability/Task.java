package halobench.durability;

import halobench.spec.Config;

/** What the parent wants in the test of durability classes; docs/lab/durability.md has the protocol. */
public record Task(
        String mode,
        String engine,
        String dir,
        String db,
        Config config,
        String ledger,
        String dump,
        Shape shape,
        boolean close) {
    /** The numbers behind what is written. */
    public record Shape(long threads, long slots, long batch, long seed) {}

    /** The line that holds a task; a plan's has none. */
    public record Line(Task durability) {}
}
