package halobench.child;

import halobench.engine.Slice;
import java.util.Arrays;

/** The key before, to check the order of a scan, in a buffer that is kept. */
final class Previous {
    private byte[] bytes = new byte[64];
    private int length;
    private boolean any;

    /** Begins anew. */
    void clear() {
        any = false;
    }

    /** Whether the key before is smaller (backward: greater), or there was none; {@code key} takes its place. */
    boolean precedes(Slice key, boolean backward) {
        boolean right = true;
        if (any) {
            int order = Arrays.compareUnsigned(bytes, 0, length, key.bytes, key.from, key.from + key.length);
            right = backward ? order > 0 : order < 0;
        }
        if (bytes.length < key.length) {
            bytes = new byte[key.length];
        }
        System.arraycopy(key.bytes, key.from, bytes, 0, key.length);
        length = key.length;
        any = true;
        return right;
    }

    /** The last key. */
    byte[] key() {
        return Arrays.copyOf(bytes, length);
    }

    /** The last key's array, of which {@link #length} bytes count. */
    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }
}
