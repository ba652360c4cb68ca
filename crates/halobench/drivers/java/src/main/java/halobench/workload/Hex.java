package halobench.workload;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Sixteen lower-case hexadecimal digits of a number, and back. */
final class Hex {
    private static final VarHandle BIG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private Hex() {}

    /** Writes 16 digits of {@code x} into {@code out} from {@code at} on. */
    static void write(long x, byte[] out, int at) {
        BIG.set(out, at, eight(x >>> 32));
        BIG.set(out, at + 8, eight(x & 0xFFFFFFFFL));
    }

    /** Spreads eight nibbles to bytes, then adds '0', and 39 more where a nibble is above 9. */
    private static long eight(long n) {
        n = (n | n << 16) & 0x0000FFFF0000FFFFL;
        n = (n | n << 8) & 0x00FF00FF00FF00FFL;
        n = (n | n << 4) & 0x0F0F0F0F0F0F0F0FL;
        long above9 = ((n + 0x0606060606060606L) >>> 4) & 0x0101010101010101L;
        return n + 0x3030303030303030L + above9 * 39;
    }

    /** The value of a digit, or -1. */
    private static int nibble(byte b) {
        if (b >= '0' && b <= '9') {
            return b - '0';
        }
        return b >= 'a' && b <= 'f' ? b - 'a' + 10 : -1;
    }

    /** Whether all of so many bytes are digits. */
    static boolean areDigits(byte[] bytes, int from, int count) {
        for (int i = from; i < from + count; i++) {
            if (nibble(bytes[i]) < 0) {
                return false;
            }
        }
        return true;
    }

    /** The number that so many digits (at most 16) make. */
    static long read(byte[] bytes, int from, int count) {
        long x = 0;
        for (int i = from; i < from + count; i++) {
            x = x << 4 | nibble(bytes[i]);
        }
        return x;
    }
}
