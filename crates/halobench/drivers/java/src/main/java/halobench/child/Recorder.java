package halobench.child;

import halobench.spec.Latency;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.IntCountsHistogram;

/** Collects one thread's latencies, of one call in so many, in nanoseconds with three digits. */
final class Recorder {
    /** Hours. */
    private static final long MOST = 1L << 45;

    private final IntCountsHistogram histogram = new IntCountsHistogram(1, MOST, 3);
    private final long every;
    private long until = 1;

    Recorder(long every) {
        this.every = Math.max(every, 1);
    }

    /** Whether the next call is to be timed. */
    boolean turn() {
        if (--until > 0) {
            return false;
        }
        until = every;
        return true;
    }

    /** A timed call took so long. */
    void add(long ns) {
        histogram.recordValue(Math.min(Math.max(ns, 0), MOST));
    }

    /** All of them together. */
    static Histogram merge(Stream<Recorder> recorders) {
        Histogram all = new Histogram(1, MOST, 3);
        recorders.forEach(r -> all.add(r.histogram));
        return all;
    }

    /** Its percentiles. */
    static Latency latency(Histogram all, boolean perBatch) {
        return new Latency(
                perBatch,
                all.getTotalCount(),
                all.getMean(),
                all.getStdDeviation(),
                all.getTotalCount() == 0 ? 0 : all.getMinValue(),
                all.getValueAtPercentile(50),
                all.getValueAtPercentile(95),
                all.getValueAtPercentile(99),
                all.getValueAtPercentile(99.9),
                all.getValueAtPercentile(99.99),
                all.getMaxValue());
    }

    /** The V2 encoding, not compressed, in base64; {@code null} if there is nothing in it. */
    static String encoded(Histogram all) {
        if (all.getTotalCount() == 0) {
            return null;
        }
        ByteBuffer buffer = ByteBuffer.allocate(all.getNeededByteBufferCapacity());
        int length = all.encodeIntoByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
    }
}
