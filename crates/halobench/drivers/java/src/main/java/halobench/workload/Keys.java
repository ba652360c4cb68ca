package halobench.workload;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Keys from ids, and back: a scan can be checked entry by entry without a table of the keys. */
public final class Keys {
    /** No id: outside every data set. */
    public static final long NONE = -1;

    private static final VarHandle BIG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final long TIMESTAMP_BASE = 1_700_000_000_000_000L;
    private static final long VERSION_MASK = 0xF000L;
    private static final long VARIANT_MASK = 0xC000000000000000L;

    private final Encoding encoding;
    private final int length;
    private final long salt;

    /** Keys of {@code length} bytes for ids below {@code n}; fails, in words, if they do not fit. */
    public Keys(Encoding encoding, int length, long n, long seed) {
        int least = encoding == Encoding.ORDERED
                ? 16 - Long.numberOfLeadingZeros(Math.max(n, 1)) / 4
                : encoding == Encoding.UUID ? 16 : 8;
        if (length < least || length > 511) {
            throw new IllegalArgumentException(
                    "keys of " + length + " bytes: this pattern needs " + least + " to 511 bytes");
        }
        this.encoding = encoding;
        this.length = length;
        this.salt = Rng.stream(seed, 1);
    }

    /** Bytes of a key. */
    public int length() {
        return length;
    }

    /** Writes the key of {@code id} into {@code out}, which has as many bytes as a key. */
    public void encode(long id, byte[] out) {
        switch (encoding) {
            case ORDERED -> hexPadded(id, out);
            case HASHED -> whole(Rng.mix(id + salt), out);
            case TIMESTAMP -> whole(timestamp(id), out);
            case COMPAT -> whole(Long.reverseBytes(id), out);
            case UUID -> encodeUuid(id, out);
        }
    }

    /** The id whose key this is, perhaps one outside the data set; {@link #NONE} if it is no key at all. */
    public long decode(byte[] key, int from, int length) {
        if (length != this.length) {
            return NONE;
        }
        if (encoding == Encoding.UUID) {
            return decodeUuid(key, from);
        }
        boolean digits = encoding == Encoding.ORDERED || length >= 16;
        int pad = Math.max(length - (digits ? 16 : 8), 0);
        for (int i = from; i < from + pad; i++) {
            if (key[i] != '0') {
                return NONE;
            }
        }
        if (digits && !Hex.areDigits(key, from + pad, length - pad)) {
            return NONE;
        }
        long x = digits ? Hex.read(key, from + pad, length - pad) : (long) BIG.get(key, from + pad);
        return switch (encoding) {
            case ORDERED -> x;
            case HASHED -> Rng.unmix(x) - salt;
            case COMPAT -> Long.reverseBytes(x);
            default -> {
                if (Long.compareUnsigned(x, TIMESTAMP_BASE) < 0) {
                    yield NONE;
                }
                long id = Long.divideUnsigned(x - TIMESTAMP_BASE, 1000);
                yield timestamp(id) == x ? id : NONE;
            }
        };
    }

    /** Whether ids in order are keys in order. */
    public boolean inOrder() {
        return encoding == Encoding.ORDERED || encoding == Encoding.TIMESTAMP;
    }

    /** An unsigned number that orders ids as their keys are ordered (for UUIDs, by their first half). */
    public long sortKey(long id) {
        return switch (encoding) {
            case ORDERED -> id;
            case HASHED -> Rng.mix(id + salt);
            case TIMESTAMP -> timestamp(id);
            case UUID -> uuidHigh(id);
            case COMPAT -> Long.reverseBytes(id);
        };
    }

    private long timestamp(long id) {
        return TIMESTAMP_BASE + id * 1000 + Rng.reduce(Rng.at(salt, id), 1000);
    }

    private long uuidHigh(long id) {
        return (Rng.mix(id + salt) & ~VERSION_MASK) | 0x4000;
    }

    private long uuidLow(long id) {
        return (Rng.mix(id ^ salt) & ~VARIANT_MASK) | 0x8000000000000000L;
    }

    private void encodeUuid(long id, byte[] out) {
        long high = uuidHigh(id);
        long low = uuidLow(id);
        if (out.length < 36) {
            BIG.set(out, 0, high);
            BIG.set(out, 8, low);
            Arrays.fill(out, 16, out.length, (byte) '0');
            return;
        }
        byte[] digits = new byte[32];
        Hex.write(high, digits, 0);
        Hex.write(low, digits, 16);
        int at = 0;
        for (int i = 0; i < 32; i++) {
            if (i == 8 || i == 12 || i == 16 || i == 20) {
                out[at++] = '-';
            }
            out[at++] = digits[i];
        }
        Arrays.fill(out, 36, out.length, (byte) '0');
    }

    private long decodeUuid(byte[] key, int from) {
        long high;
        long low;
        if (length < 36) {
            high = (long) BIG.get(key, from);
            low = (long) BIG.get(key, from + 8);
        } else {
            byte[] digits = new byte[32];
            int count = 0;
            for (int i = from; i < from + 36 && count < 32; i++) {
                if (key[i] != '-') {
                    digits[count++] = key[i];
                }
            }
            if (count < 32 || !Hex.areDigits(digits, 0, 32)) {
                return NONE;
            }
            high = Hex.read(digits, 0, 16);
            low = Hex.read(digits, 16, 16);
        }
        // The variant's two bits replaced two bits of the low half's hash: try the four.
        for (long top = 0; top < 4; top++) {
            long id = Rng.unmix((low & ~VARIANT_MASK) | top << 62) ^ salt;
            if (id >= 0 && id < 1L << 32 && uuidHigh(id) == high && uuidLow(id) == low) {
                return id;
            }
        }
        return NONE;
    }

    /** All 64 bits, in digits or, where these do not fit, in bytes. */
    private static void whole(long x, byte[] out) {
        if (out.length >= 16) {
            hexPadded(x, out);
            return;
        }
        int pad = out.length - 8;
        Arrays.fill(out, 0, pad, (byte) '0');
        BIG.set(out, pad, x);
    }

    private static void hexPadded(long x, byte[] out) {
        int n = out.length;
        if (n >= 16) {
            Arrays.fill(out, 0, n - 16, (byte) '0');
            Hex.write(x, out, n - 16);
            return;
        }
        byte[] digits = new byte[16];
        Hex.write(x, digits, 0);
        System.arraycopy(digits, 16 - n, out, 0, n);
    }
}
