package halobench.workload;

/** A set of numbers below a bound, up to 2^32. */
public final class Bits {
    private final long n;
    private final long[] words;

    /** The empty set of numbers below {@code n}. */
    public Bits(long n) {
        this.n = n;
        words = new long[(int) ((n + 63) >>> 6)];
    }

    /** Whether {@code i} is in it. */
    public boolean get(long i) {
        return i >= 0 && i < n && (words[(int) (i >>> 6)] >>> (i & 63) & 1) == 1;
    }

    /** Puts {@code i} in; whether it was not there. */
    public boolean insert(long i) {
        boolean fresh = !get(i);
        words[(int) (i >>> 6)] |= 1L << (i & 63);
        return fresh;
    }

    /** Takes {@code i} out. */
    public void remove(long i) {
        words[(int) (i >>> 6)] &= ~(1L << (i & 63));
    }

    /** How many are in it. */
    public long count() {
        long count = 0;
        for (long word : words) {
            count += Long.bitCount(word);
        }
        return count;
    }

    /** Bytes of memory held. */
    public long memory() {
        return words.length * 8L;
    }
}
