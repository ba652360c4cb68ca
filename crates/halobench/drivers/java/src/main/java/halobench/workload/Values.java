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

    /** Most bytes of a pool, and the longest value that is one piece of it. */
    private static final int POOL_MAX = 64 << 20;

    private final ValueKind kind;
    private final int length;
    private final long salt;
    private final boolean versioned;
    private final boolean inHex;
    private final long pieces;
    private final byte[] pool;
    /** Bytes of a step, if the pool is a ring that values are read from round and round, and not a row of pieces; or 0. */
    private final int ringStep;

    /** Values of {@code length} bytes. */
    public Values(ValueKind kind, int length, long seed) {
        this.kind = kind;
        this.length = length;
        this.salt = Rng.stream(seed, 2);
        this.inHex = kind.isText();
        this.versioned = kind != ValueKind.RAMP && length >= (inHex ? 16 : 8);
        this.ringStep = switch (kind) {
            case PROSE -> 1;
            case RAMP -> 0;
            default -> length > POOL_MAX ? 8 : 0;
        };
        int piece = Math.min(length, POOL_MAX);
        long poolLength = Math.min(Math.max(1024L * piece, 1 << 20), POOL_MAX);
        this.pieces = Math.max(poolLength / Math.max(piece, 1), 1);
        long poolSeed = Rng.stream(seed, 3);
        int bytes = Math.toIntExact(kind == ValueKind.RAMP ? length + 256 : pieces * piece);
        this.pool = kind == ValueKind.PROSE ? Text.prose() : new byte[bytes];
        switch (kind) {
            case RAMP -> {
                for (int i = 0; i < bytes; i++) {
                    pool[i] = (byte) i;
                }
            }
            case INCOMPRESSIBLE -> random(0, bytes, poolSeed, 0);
            case HALF -> {
                int half = (piece + 1) / 2;
                long draw = 0;
                for (int start = 0; start < bytes; start += piece) {
                    draw = random(start, half, poolSeed, draw);
                    System.arraycopy(pool, start, pool, start + half, piece - half);
                }
            }
            case TEXT -> Text.words(pool, poolSeed);
            case JSON -> Text.json(pool, poolSeed);
            case PROSE -> { }
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
        if (ringStep == 0) {
            System.arraycopy(pool, piece(tag), out, 0, length);
        } else {
            int start = ringStart(tag);
            for (int at = 0; at < length; start = 0) {
                int n = Math.min(length - at, pool.length - start);
                System.arraycopy(pool, start, out, at, n);
                at += n;
            }
        }
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

    /** Where in the ring the value with this tag begins. */
    private int ringStart(long tag) {
        return (int) (ringStep * Rng.reduce(Rng.mix(tag), pool.length / ringStep));
    }

    /** Whether these bytes are those of a ring's value with this tag, but for the first {@code n}. */
    private boolean isRing(long tag, byte[] bytes, int from, int n) {
        int start = ringStart(tag);
        for (int at = 0; at < length; start = 0) {
            int stretch = Math.min(length - at, pool.length - start);
            int skip = Math.min(Math.max(n - at, 0), stretch);
            if (!Arrays.equals(bytes, from + at + skip, from + at + stretch, pool, start + skip, start + stretch)) {
                return false;
            }
            at += stretch;
        }
        return true;
    }

    /** The {@link ReadDigest} of the first value of {@code id}, for values that a pass or a range reads. */
    public long digest(long id, byte[] scratch) {
        fill(id, 0, scratch);
        return ReadDigest.of(scratch, 0, length);
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
        int piece = ringStep == 0 ? piece(tag) : 0;
        if (versioned && !inHex && ringStep == 0) {
            return (long) LITTLE.get(bytes, from) == tag
                    && Arrays.equals(bytes, from + 8, from + count, pool, piece + 8, piece + length);
        }
        byte[] head = head(tag);
        int n = Math.min(head.length, length);
        if (!Arrays.equals(bytes, from, from + n, head, 0, n)) {
            return false;
        }
        return ringStep > 0
                ? isRing(tag, bytes, from, n)
                : Arrays.equals(bytes, from + n, from + count, pool, piece + n, piece + length);
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
