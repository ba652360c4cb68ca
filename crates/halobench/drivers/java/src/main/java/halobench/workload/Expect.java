package halobench.workload;

/**
 * What must be in the database: which ids, and which version of each. In a phase that may write an id repeatedly, operation
 * {@code j} writes version {@code j + 1}; threads race, so the survivor is the last write of <em>some</em> thread.
 */
public final class Expect {
    /** The repeated writes of one phase: which are some thread's last to their id, and which ids were written. */
    private record Overwrites(Ops ops, Bits last, Bits touched) {}

    private final long n;
    private final Bits present;
    private Overwrites over;

    /** An empty database, for ids below {@code n}. */
    public Expect(long n) {
        this.n = n;
        this.present = new Bits(n);
    }

    /** How many keys there are. */
    public long count() {
        return present.count();
    }

    /** Whether all ids are present, at version 0. */
    public boolean isPlain() {
        return over == null && count() == n;
    }

    /** Whether {@code id} has a value. */
    public boolean has(long id) {
        return present.get(id);
    }

    /** Every operation wrote version 0. */
    public void writeOnce(Ops ops) {
        for (long j = 0; j < ops.count(); j++) {
            present.insert(ops.id(j));
        }
    }

    /** Operations wrote version {@code j + 1}; in a mixed phase, only those whose coin says so. */
    public void overwrite(Ops ops, int threads, boolean mixed) {
        if (over != null) {
            throw new IllegalArgumentException("only one phase of a run may write keys repeatedly");
        }
        over = new Overwrites(ops, new Bits(ops.count()), new Bits(n));
        for (int t = 0; t < threads; t++) {
            Bits seen = new Bits(n);
            for (long j = ops.share(t + 1, threads) - 1; j >= ops.share(t, threads); j--) {
                long id = ops.id(j);
                if ((!mixed || ops.writes(j)) && seen.insert(id)) {
                    over.last.insert(j);
                    over.touched.insert(id);
                    present.insert(id);
                }
            }
        }
    }

    /** Every operation deleted. */
    public void delete(Ops ops) {
        for (long j = 0; j < ops.count(); j++) {
            present.remove(ops.id(j));
        }
    }

    /** Whether these bytes are what {@code id} must have now, when nothing is writing. */
    public boolean check(Generator generator, long id, byte[] bytes, int from, int count) {
        if (!has(id)) {
            return false;
        }
        if (over == null) {
            return generator.values.is(id, 0, bytes, from, count);
        }
        long version = generator.values.read(id, bytes, from, count);
        if (version == Values.WRONG) {
            return false;
        }
        if (version == Values.UNVERSIONED) {
            return true;
        }
        if (version == 0) {
            return !over.touched.get(id);
        }
        return over.last.get(version - 1) && over.ops.id(version - 1) == id;
    }

    /**
     * Whether these bytes are some that a mixed phase over a loaded set may show for {@code id} while it runs: the loaded
     * value, or one that some operation of the phase writes to {@code id}.
     */
    public static boolean plausible(Generator generator, Ops ops, long id, byte[] bytes, int from, int count) {
        long version = generator.values.read(id, bytes, from, count);
        if (version == Values.WRONG) {
            return false;
        }
        return version <= 0
                || version <= ops.count() && ops.id(version - 1) == id && ops.writes(version - 1);
    }

    /** Bytes of memory held, roughly. */
    public long memory() {
        long writes = over == null ? 0 : over.ops.memory() + over.last.memory() + over.touched.memory();
        return present.memory() + writes;
    }
}
