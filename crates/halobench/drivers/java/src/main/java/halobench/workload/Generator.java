package halobench.workload;

/** A data set with its generators. */
public final class Generator {
    public final DataSet set;
    public final Keys keys;
    public final Values values;

    /** Fails, in words, on sizes that cannot work. */
    public Generator(DataSet set) {
        this(set, null);
    }

    private Generator(DataSet set, Values values) {
        if (set.n() < 1 || set.n() > 0xFFFFFFFFL) {
            throw new IllegalArgumentException(
                    Long.toUnsignedString(set.n()) + " keys: between 1 and 4294967295 are possible");
        }
        this.set = set;
        this.keys = new Keys(set.encoding(), set.keyLen(), set.n(), set.seed());
        this.values = values == null ? new Values(set.valueKind(), set.valueLen(), set.seed()) : values;
    }

    /** The same for another number of keys; the pool of values is shared. */
    public Generator of(long n) {
        DataSet other =
                new DataSet(n, set.encoding(), set.keyLen(), set.valueLen(), set.valueKind(), set.seed());
        return new Generator(other, values);
    }
}
