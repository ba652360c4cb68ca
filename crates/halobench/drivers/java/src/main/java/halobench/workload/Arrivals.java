package halobench.workload;

/** When the operations of an open loop are due: a Poisson process for each thread. */
public final class Arrivals {
    private final long seed;
    private final double threads;
    private final double rate;

    /** {@code rate} operations a second, of all {@code threads}, in the phase numbered {@code stream} of a run. */
    public Arrivals(long seed, long stream, int threads, double rate) {
        this.seed = Rng.stream(seed, (1L << 32) + stream);
        this.threads = threads;
        this.rate = rate;
    }

    /** Seconds between the arrival before and that of the {@code batch} operations from {@code j} on. */
    public double gap(long j, long batch) {
        return -Zipf.ln(1.0 - Rng.unit(Rng.at(seed, j))) * (threads * batch / rate);
    }
}
