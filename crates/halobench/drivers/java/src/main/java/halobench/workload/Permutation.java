package halobench.workload;

/** A fixed pseudo-random permutation of {@code 0..n}: a bijection on the next power of two, walked until it lands inside. */
public final class Permutation {
    private final long n;
    private final int bits;
    private final long[] rounds = new long[3];

    /** The permutation that {@code seed} chooses, for {@code n >= 1}. */
    public Permutation(long n, long seed) {
        this.n = n;
        this.bits = 64 - Long.numberOfLeadingZeros(n - 1);
        for (int r = 0; r < 3; r++) {
            rounds[r] = Rng.at(seed, r);
        }
    }

    /** Where {@code i < n} goes. */
    public long apply(long i) {
        if (bits == 0) {
            return 0;
        }
        long mask = -1L >>> (64 - bits);
        int shift = (bits + 1) / 2;
        do {
            for (long round : rounds) {
                i = (i + round) & mask;
                i = (i * 0x9E3779B97F4A7C15L) & mask;
                i ^= i >>> shift;
            }
        } while (i >= n);
        return i;
    }
}
