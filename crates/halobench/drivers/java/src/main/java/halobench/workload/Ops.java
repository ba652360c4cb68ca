package halobench.workload;

/** Which id each operation of a phase touches: computed before the clock starts, four bytes an operation at most. */
public final class Ops {
    /** The skew of the zipfian order. */
    static final double THETA = 0.99;

    private final Order order;
    private final long n;
    private final long count;
    private final int[] list;
    private final long draws;
    private final long coinSeed;

    /** {@code count} operations over {@code n} ids. Phases of one run differ by {@code stream}. */
    public Ops(Order order, long n, long count, long seed, long stream) {
        this(order, n, count, seed, stream, order != Order.UP && order != Order.DOWN);
    }

    /**
     * Operations over ids drawn evenly: the same as {@link Order#UNIFORM}, but each id is computed when it is asked for, so
     * that it holds no memory.
     */
    public static Ops evenly(long n, long count, long seed, long stream) {
        return new Ops(Order.UNIFORM, n, count, seed, stream, false);
    }

    private Ops(Order order, long n, long count, long seed, long stream, boolean listed) {
        this.order = order;
        this.n = n;
        this.count = count;
        this.coinSeed = Rng.stream(seed, 17 + 2 * stream);
        this.draws = Rng.stream(seed, 16 + 2 * stream);
        if (!listed) {
            list = null;
            return;
        }
        if (count > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException(count + " operations in this order: this driver can do at most 2^31");
        }
        list = new int[(int) count];
        Permutation permutation = new Permutation(n, Rng.stream(seed, 4));
        Zipf zipf = order == Order.ZIPF ? new Zipf(n, THETA) : null;
        for (int j = 0; j < list.length; j++) {
            list[j] = (int) switch (order) {
                case SHUFFLED -> permutation.apply(j % n);
                case UNIFORM -> Rng.reduce(Rng.at(draws, j), n);
                default -> permutation.apply(zipf.rank(Rng.at(draws, j)));
            };
        }
    }

    /** Number of operations. */
    public long count() {
        return count;
    }

    /** Number of ids. */
    public long ids() {
        return n;
    }

    /** The id of operation {@code j}. */
    public long id(long j) {
        if (list != null) {
            return list[(int) j] & 0xFFFFFFFFL;
        }
        if (order == Order.UNIFORM) {
            return Rng.reduce(Rng.at(draws, j), n);
        }
        long i = j < n ? j : j % n;
        return order == Order.UP ? i : n - 1 - i;
    }

    /** Whether operation {@code j} of a mixed phase is a write: a fair coin. */
    public boolean writes(long j) {
        return (Rng.at(coinSeed, j) & 1) == 1;
    }

    /** Where the share of thread {@code t} of {@code threads} begins; it ends where the next one's begins. */
    public long share(int t, int threads) {
        return share(count, t, threads);
    }

    /** The same for any number of operations: the product needs 128 bits. */
    static long share(long count, int t, int threads) {
        long whole = count / threads;
        long rest = count % threads;
        return whole * t + rest * t / threads;
    }

    /** Bytes of memory held. */
    public long memory() {
        return list == null ? 0 : list.length * 4L;
    }
}
