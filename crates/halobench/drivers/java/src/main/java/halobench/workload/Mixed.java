package halobench.workload;

import halobench.spec.Mix;

/** The operations of a mix: which is which, and of which id. */
public final class Mixed {
    private static final Turn[] TURNS = Turn.values();

    private final Ops ops;
    private final long coins;
    /** Running sums of the shares but the last. */
    private final int[] sums;
    private final long size;
    private final long first;
    /** Of gets that prefer new keys, how new: computed beforehand, since a rank costs more than a get may. */
    private final int[] ranks;

    /** The shares {@code mix} over {@code ops}; scans of up to {@code size} entries; inserts take ids from {@code first} on. */
    public Mixed(Ops ops, Mix mix, int size, long first, long seed, long stream) {
        this.ops = ops;
        this.coins = Rng.stream(seed, 17 + 2 * stream);
        int read = mix.read();
        int update = read + mix.update();
        int insert = update + mix.insert();
        this.sums = new int[] {read, update, insert, insert + mix.scan()};
        this.size = size;
        this.first = first;
        if (!mix.latest()) {
            ranks = null;
            return;
        }
        if (ops.count() > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("a mix of more than 2^31 operations is too much for this driver");
        }
        ranks = new int[(int) ops.count()];
        long draws = Rng.stream(seed, 16 + 2 * stream);
        Zipf zipf = new Zipf(ops.ids(), Ops.THETA);
        for (int j = 0; j < ranks.length; j++) {
            ranks[j] = turn(j) == Turn.READ ? (int) zipf.rank(Rng.at(draws, j)) : 0;
        }
    }

    /** The plain order of it. */
    public Ops ops() {
        return ops;
    }

    /** The id of the first insert. */
    public long first() {
        return first;
    }

    /** What operation {@code j} is. */
    public Turn turn(long j) {
        long draw = Rng.reduce(Rng.at(coins, j), 100);
        int turn = 0;
        while (turn < 4 && draw >= sums[turn]) {
            turn++;
        }
        return TURNS[turn];
    }

    /** How many inserts there are among the operations from {@code start} up to {@code end}. */
    public long inserts(long start, long end) {
        long count = 0;
        if (sums[2] > sums[1]) {
            for (long j = start; j < end; j++) {
                count += turn(j) == Turn.INSERT ? 1 : 0;
            }
        }
        return count;
    }

    /** The loaded id of operation {@code j}. */
    public long id(long j) {
        return ops.id(j);
    }

    /** The id of the get that is operation {@code j}, for a thread that inserted {@code own} ids, up to but without {@code next}. */
    public long readId(long j, long own, long next) {
        if (ranks == null) {
            return ops.id(j);
        }
        long rank = ranks[(int) j] & 0xFFFFFFFFL;
        return rank < own ? next - 1 - rank : ops.ids() - 1 - (rank - own);
    }

    /** Entries of the scan that is operation {@code j}, if so many are there. */
    public int scanLength(long j) {
        return 1 + (int) Rng.reduce(Rng.mix(Rng.at(coins, j)), size);
    }

    /** Bytes of memory held. */
    public long memory() {
        return ops.memory() + (ranks == null ? 0 : ranks.length * 4L);
    }
}
