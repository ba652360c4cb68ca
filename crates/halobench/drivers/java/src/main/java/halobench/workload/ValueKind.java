package halobench.workload;

/** What values are made of. */
public enum ValueKind {
    HALF,
    INCOMPRESSIBLE,
    RAMP,
    TEXT,
    JSON,
    PROSE;

    /** Whether it is printable, its tag too. */
    boolean isText() {
        return this == TEXT || this == JSON || this == PROSE;
    }
}
