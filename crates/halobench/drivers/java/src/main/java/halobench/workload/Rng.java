package halobench.workload;

/**
 * SplitMix64 as a function of a counter: the only source of randomness. All numbers are unsigned and 64 bits wide, held
 * in {@code long}s.
 */
public final class Rng {
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;

    private Rng() {}

    /** SplitMix64's finalizer: a bijection on 64 bits. */
    public static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    /** The inverse of {@link #mix}. */
    public static long unmix(long z) {
        z = (z ^ (z >>> 31) ^ (z >>> 62)) * 0x319642B2D24D8EC3L;
        z = (z ^ (z >>> 27) ^ (z >>> 54)) * 0x96DE1B173F119089L;
        return z ^ (z >>> 30) ^ (z >>> 60);
    }

    /** Draw {@code j} of the stream {@code seed}. */
    public static long at(long seed, long j) {
        return mix(seed + (j + 1) * GOLDEN);
    }

    /** The seed of stream {@code stream} below {@code seed}. */
    public static long stream(long seed, long stream) {
        return mix(seed ^ mix(stream * GOLDEN));
    }

    /** Maps a draw to {@code 0..n}: the high half of the unsigned product. */
    public static long reduce(long draw, long n) {
        return Math.multiplyHigh(draw, n) + ((draw >> 63) & n) + ((n >> 63) & draw);
    }

    /** Maps a draw to [0, 1) with 53 bits. */
    public static double unit(long draw) {
        return (draw >>> 11) * 0x1p-53;
    }
}
