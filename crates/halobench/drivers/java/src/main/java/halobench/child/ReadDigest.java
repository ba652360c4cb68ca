package halobench.child;

import halobench.engine.Slice;
import halobench.workload.Rng;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The digest of the values that reads lent: a wrapping sum, so that the order does not matter. */
final class ReadDigest {
    private static final VarHandle LITTLE =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private long sum;

    /** Adds a value. */
    void add(Slice value) {
        long first;
        long last;
        int n = value.length;
        if (n >= 8) {
            first = (long) LITTLE.get(value.bytes, value.from);
            last = (long) LITTLE.get(value.bytes, value.from + n - 8);
        } else {
            long word = 0;
            for (int i = n - 1; i >= 0; i--) {
                word = word << 8 | value.bytes[value.from + i] & 0xFF;
            }
            first = word;
            last = word;
        }
        sum += Rng.mix(first + Rng.mix(last) + n);
    }

    /** Adds another thread's. */
    void add(ReadDigest other) {
        sum += other.sum;
    }

    /** Sixteen hexadecimal digits. */
    @Override
    public String toString() {
        return String.format("%016x", sum);
    }
}
