package halobench.spec;

import halobench.workload.Order;

/**
 * One timed (or loading) stretch of work. {@code case} is a word of Java's, so the reader of plans renames it. A
 * {@code rate} of 0 means a closed loop, {@code seconds} of 0 no end but the last operation's.
 */
public record Phase(
        String caseName,
        Kind kind,
        Order order,
        long ops,
        int threads,
        long batch,
        int rangeSize,
        boolean settle,
        long stream,
        double rate,
        double seconds,
        boolean backward,
        Mix mix,
        Background background) {}
