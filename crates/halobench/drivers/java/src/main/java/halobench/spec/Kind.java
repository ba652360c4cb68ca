package halobench.spec;

/** What a phase does. */
public enum Kind {
    WRITE,
    READ,
    MIXED,
    DELETE,
    SEEK,
    RANGE,
    ITERATE,
    MIX;

    /** Whether it changes the data. */
    public boolean changes() {
        return this == WRITE || this == MIXED || this == DELETE || this == MIX;
    }
}
