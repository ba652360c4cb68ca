package halobench.workload;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Values, as a function of the seed, the key's id and a version: a piece of a pool, with a tag over its first bytes that
 * tells id and version. See docs/lab/generators.md.
 */
public final class Values {
    /** What {@link #read} says of a value that is not one of its key. */
    public static final long WRONG = -1;
    /** What {@link #read} says of a right value from which no version can be told. */
    public static final long UNVERSIONED = -2;

    private static final VarHandle LITTLE =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final ValueKind kind;
    private final int length;
    private final long salt;
    private final boolean versioned;
    private final boolean inHex;
    private final long pieces;
    private final byte[] pool;

    /** Values of {@code length} bytes. */
    public Values(ValueKind kind, int length, long seed) {
        this.kind = kind;
        this.length = length;
        this.salt = Rng.stream(seed, 2);
        this.inHex = kind == ValueKind.TEXT || kind == ValueKind.JSON;
        this.versioned = kind != ValueKind.RAMP && length >= (inHex ? 16 : 8);
        long poolLength = Math.min(Math.max(1024L * length, 1 << 20), 64 << 20);
        this.pieces = Math.max(poolLength / Math.max(length, 1), 1);
        long poolSeed = Rng.stream(seed, 3);
        int bytes = Math.toIntExact(kind == ValueKind.RAMP ? length + 256 : pieces * length);
        this.pool = new byte[bytes];
        switch (kind) {
            case RAMP -> {
                for (int i = 0; i < bytes; i++) {
                    pool[i] = (byte) i;
                }
            }
            case INCOMPRESSIBLE -> random(0, bytes, poolSeed, 0);
            case HALF -> {
                int half = (length + 1) / 2;
                long draw = 0;
                for (int start = 0; start < bytes; start += length) {
                    draw = random(start, half, poolSeed, draw);
                    System.arraycopy(pool, start, pool, start + half, length - half);
                }
            }
            case TEXT -> Text.words(pool, poolSeed);
            case JSON -> Text.json(pool, poolSeed);
        }
    }

    /** Writes so many random bytes of the pool; returns the next draw. */
    private long random(int from, int count, long seed, long draw) {
        int end = from + count;
        int at = from;
        for (; at + 8 <= end; at += 8) {
            LITTLE.set(pool, at, Rng.at(seed, draw++));
        }
        if (at < end) {
            long word = Rng.at(seed, draw++);
            for (; at < end; at++, word >>>= 8) {
                pool[at] = (byte) word;
            }
        }
        return draw;
    }

    /** Bytes of a value. */
    public int length() {
        return length;
    }

    /** Bytes of memory held. */
    public long memory() {
        return pool.length;
    }

    private long tag(long id, long version) {
        return Rng.mix(Rng.mix(id + salt) + (versioned ? version : 0));
    }

    private int piece(long tag) {
        return (int) (Rng.reduce(Rng.mix(tag), pieces) * length);
    }

    /** Writes the value of {@code id} at {@code version} into {@code out}, which has as many bytes as a value. */
    public void fill(long id, long version, byte[] out) {
        if (kind == ValueKind.RAMP) {
            System.arraycopy(pool, (int) (id & 255), out, 0, length);
            return;
        }
        long tag = tag(id, version);
        System.arraycopy(pool, piece(tag), out, 0, length);
        if (versioned) {
            if (inHex) {
                Hex.write(tag, out, 0);
            } else {
                LITTLE.set(out, 0, tag);
            }
        } else {
            byte[] head = head(tag);
            System.arraycopy(head, 0, out, 0, Math.min(head.length, length));
        }
    }

    /** All of a tag, for values that have no room for it. */
    private byte[] head(long tag) {
        byte[] head = new byte[inHex ? 16 : 8];
        if (inHex) {
            Hex.write(tag, head, 0);
        } else {
            LITTLE.set(head, 0, tag);
        }
        return head;
    }

    /** Whether these bytes are the value of {@code id} at {@code version}. */
    public boolean is(long id, long version, byte[] bytes, int from, int count) {
        if (count != length) {
            return false;
        }
        if (kind == ValueKind.RAMP) {
            int i = (int) (id & 255);
            return Arrays.equals(bytes, from, from + count, pool, i, i + length);
        }
        long tag = tag(id, version);
        int piece = piece(tag);
        if (versioned && !inHex) {
            return (long) LITTLE.get(bytes, from) == tag
                    && Arrays.equals(bytes, from + 8, from + count, pool, piece + 8, piece + length);
        }
        byte[] head = head(tag);
        int n = Math.min(head.length, length);
        return Arrays.equals(bytes, from, from + n, head, 0, n)
                && Arrays.equals(bytes, from + n, from + count, pool, piece + n, piece + length);
    }

    /** The version that these bytes are of {@code id}'s value, or {@link #WRONG}, or {@link #UNVERSIONED}. */
    public long read(long id, byte[] bytes, int from, int count) {
        if (!versioned) {
            return is(id, 0, bytes, from, count) ? UNVERSIONED : WRONG;
        }
        if (count != length || (inHex && !Hex.areDigits(bytes, from, 16))) {
            return WRONG;
        }
        long tag = inHex ? Hex.read(bytes, from, 16) : (long) LITTLE.get(bytes, from);
        long version = Rng.unmix(tag) - Rng.mix(id + salt);
        // Nobody writes 2^63 versions.
        return version >= 0 && is(id, version, bytes, from, count) ? version : WRONG;
    }
}
