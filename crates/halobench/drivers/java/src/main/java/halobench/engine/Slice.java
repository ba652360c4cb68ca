package halobench.engine;

import java.util.Arrays;

/** Bytes that an engine lends until its session's next call. The objects are kept and refilled. */
public final class Slice {
    public byte[] bytes = {};
    public int from;
    public int length;

    /** Lends these. */
    public void set(byte[] bytes, int from, int length) {
        this.bytes = bytes;
        this.from = from;
        this.length = length;
    }

    /** Whether these are the bytes. */
    public boolean is(byte[] other) {
        return Arrays.equals(bytes, from, from + length, other, 0, other.length);
    }

    /** How these bytes, unsigned, compare with others. */
    public int compareTo(byte[] other) {
        return Arrays.compareUnsigned(bytes, from, from + length, other, 0, other.length);
    }

    /** A copy. */
    public byte[] copy() {
        return Arrays.copyOfRange(bytes, from, from + length);
    }
}
