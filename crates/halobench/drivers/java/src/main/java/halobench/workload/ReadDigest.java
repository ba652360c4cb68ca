package halobench.workload;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The digest of a value that was read, to be added (wrapping) to others': neither order nor threads matter then. */
public final class ReadDigest {
    private static final VarHandle LITTLE =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private ReadDigest() {}

    /** The digest of one value. */
    public static long of(byte[] bytes, int from, int count) {
        long first = 0;
        long last;
        if (count >= 8) {
            first = (long) LITTLE.get(bytes, from);
            last = (long) LITTLE.get(bytes, from + count - 8);
        } else {
            for (int i = count - 1; i >= 0; i--) {
                first = first << 8 | bytes[from + i] & 0xFF;
            }
            last = first;
        }
        return Rng.mix(first + Rng.mix(last) + count);
    }
}
