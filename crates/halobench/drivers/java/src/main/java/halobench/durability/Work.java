package halobench.durability;

import halobench.workload.Rng;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Keys, values and commits, as docs/lab/durability.md says. */
final class Work {
    final Task.Shape shape;
    private final long keySalt;
    private final long valueSalt;

    Work(Task.Shape shape) {
        this.shape = shape;
        keySalt = Rng.stream(shape.seed(), 1);
        valueSalt = Rng.stream(shape.seed(), 2);
    }

    long ids() {
        return shape.threads() * shape.slots() * shape.batch();
    }

    long keysIn(long slot) {
        return slot % 2 == 1 ? shape.batch() : 1;
    }

    long id(long thread, long slot, long index) {
        return (thread * shape.slots() + slot) * shape.batch() + index;
    }

    /** Whether a key has this id. */
    boolean has(long id) {
        return id >= 0 && id < ids() && id % shape.batch() < keysIn(id / shape.batch() % shape.slots());
    }

    byte[] key(long id) {
        return String.format("%016x", Rng.mix(id + keySalt)).getBytes(StandardCharsets.US_ASCII);
    }

    /** The id of a key, or -1. */
    long idOf(byte[] key) {
        if (key.length != 16) {
            return -1;
        }
        long number = 0;
        for (byte b : key) {
            int digit = b >= '0' && b <= '9' ? b - '0' : b >= 'a' && b <= 'f' ? b - 'a' + 10 : -1;
            if (digit < 0) {
                return -1;
            }
            number = number << 4 | digit;
        }
        long id = Rng.unmix(number) - keySalt;
        return has(id) ? id : -1;
    }

    boolean removes(long number, long index) {
        return index > 0 && index == shape.batch() - 1 && number / shape.slots() % 2 == 1;
    }

    byte[] value(long id, long number) {
        long tag = Rng.mix(Rng.mix(id + valueSalt) + number);
        int length = 16 + (int) Rng.reduce(Rng.mix(tag), 512);
        if (id / shape.batch() % shape.slots() % 32 == 0) {
            length += 8192;
        }
        ByteBuffer out = ByteBuffer.allocate((length + 15) / 8 * 8).order(ByteOrder.LITTLE_ENDIAN);
        out.putLong(number);
        for (long j = 0; out.position() < length; j++) {
            out.putLong(Rng.at(tag, j));
        }
        return java.util.Arrays.copyOf(out.array(), length);
    }
}
