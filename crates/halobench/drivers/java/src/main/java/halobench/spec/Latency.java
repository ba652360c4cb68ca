package halobench.spec;

/** Percentiles in nanoseconds. */
public record Latency(
        boolean perBatch,
        long samples,
        double meanNs,
        double stddevNs,
        long minNs,
        long p50Ns,
        long p95Ns,
        long p99Ns,
        long p999Ns,
        long p9999Ns,
        long maxNs) {}
