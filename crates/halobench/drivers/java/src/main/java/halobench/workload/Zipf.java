package halobench.workload;

/** Zipf-distributed ranks in constant time, with powers computed the same way in every language. */
public final class Zipf {
    private static final double LN2 = 0.6931471805599453;
    private static final double SQRT2 = 1.4142135623730951;

    private final long n;
    private final double alpha;
    private final double eta;
    private final double zetaN;
    private final double halfPowTheta;

    /** A distribution over {@code n >= 1} ranks with a skew in (0, 1). Costs one power a rank. */
    public Zipf(long n, double theta) {
        double sum = 0;
        double zeta2 = 0;
        for (long i = 1; i <= n; i++) {
            sum += exp(-theta * ln(i));
            if (i == 2) {
                zeta2 = sum;
            }
        }
        this.n = n;
        this.zetaN = sum;
        this.alpha = 1.0 / (1.0 - theta);
        this.eta = (1.0 - exp((1.0 - theta) * ln(2.0 / n))) / (1.0 - zeta2 / sum);
        this.halfPowTheta = exp(-theta * ln(2.0));
    }

    /** The rank for a draw of 64 random bits. */
    public long rank(long draw) {
        double u = Rng.unit(draw);
        double uz = u * zetaN;
        if (uz < 1.0 || n < 2) {
            return 0;
        }
        if (uz < 1.0 + halfPowTheta || n < 3) {
            return 1;
        }
        double base = eta * u - eta + 1.0;
        double rank = n * exp(alpha * ln(base));
        return Math.min(Math.max((long) rank, 0), n - 1);
    }

    /** Natural logarithm of a positive normal number. */
    static double ln(double x) {
        long bits = Double.doubleToRawLongBits(x);
        long e = ((bits >>> 52) & 0x7ff) - 1023;
        double m = Double.longBitsToDouble((bits & 0x000fffffffffffffL) | 0x3ff0000000000000L);
        if (m > SQRT2) {
            m /= 2.0;
            e += 1;
        }
        double s = (m - 1.0) / (m + 1.0);
        double s2 = s * s;
        double sum = 0.0;
        for (int k = 21; k >= 1; k -= 2) {
            sum = sum * s2 + 1.0 / k;
        }
        return e * LN2 + 2.0 * s * sum;
    }

    /** e to the y, for |y| below 700. */
    static double exp(double y) {
        double k = Math.floor(y / LN2 + 0.5);
        double r = y - k * LN2;
        double sum = 1.0;
        for (int i = 14; i >= 1; i--) {
            sum = 1.0 + sum * r / i;
        }
        if (k < -1022.0) {
            return 0.0;
        }
        return sum * Double.longBitsToDouble(((long) k + 1023) << 52);
    }
}
