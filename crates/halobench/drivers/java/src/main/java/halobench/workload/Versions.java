package halobench.workload;

/** The versions of a phase's writes: of operation {@code j} below {@code count}, {@code base + j + 1}. */
public record Versions(long base, long count) {
    /** Those of {@code count} operations of the phase numbered {@code stream}. */
    public static Versions of(long stream, long count) {
        return new Versions(stream << 40, count);
    }

    /** The operation that writes {@code version}; negative if none does. */
    public long operation(long version) {
        long j = version - base - 1;
        return j < count ? j : -1;
    }
}
