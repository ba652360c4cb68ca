package halobench.workload;

/** Operations from {@code start} up to, but without, {@code end}: what a thread did. */
public record Stretch(long start, long end) {
    /** What each thread did, from how many operations of its share. */
    public static Stretch[] done(Ops ops, long[] counts) {
        Stretch[] done = new Stretch[counts.length];
        for (int t = 0; t < counts.length; t++) {
            long start = ops.share(t, counts.length);
            done[t] = new Stretch(start, start + counts[t]);
        }
        return done;
    }
}
