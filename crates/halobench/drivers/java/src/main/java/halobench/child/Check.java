package halobench.child;

import com.dynatrace.hash4j.hashing.HashStream64;
import com.dynatrace.hash4j.hashing.Hashing;
import halobench.engine.Cursor;
import halobench.engine.Engine;
import halobench.engine.Session;
import halobench.engine.Slice;
import halobench.workload.Bits;
import halobench.workload.Expect;
import halobench.workload.Generator;
import java.util.Arrays;

/** The check of the whole state. */
final class Check {
    /** Wrong entries, and a digest of all there is. */
    record State(Wrong wrong, String digest) {}

    private Check() {}

    /** Reads everything and compares it with what is expected: keys, their order and number, and every value. */
    static State state(Engine engine, Generator generator, Expect expect) {
        Wrong wrong = new Wrong();
        HashStream64 digest = Hashing.xxh3_64().hashStream();
        Bits seen = new Bits(generator.set.n());
        long count = 0;
        try (Session session = engine.session();
                Cursor cursor = session.cursor()) {
            byte[] previous = {};
            int previousLength = 0;
            Slice key = new Slice();
            Slice value = new Slice();
            for (boolean more = cursor.seekFirst(); more; more = cursor.next()) {
                cursor.key(key);
                if (count > 0 && Arrays.compareUnsigned(key.bytes, key.from, key.from + key.length,
                        previous, 0, previousLength) <= 0) {
                    String before = Wrong.show(Arrays.copyOf(previous, previousLength));
                    wrong.note(() -> "a scan returned " + Wrong.show(key.copy()) + " behind " + before);
                }
                if (previous.length < key.length) {
                    previous = new byte[key.length];
                }
                System.arraycopy(key.bytes, key.from, previous, 0, key.length);
                previousLength = key.length;
                cursor.value(value);
                digest.putBytes(previous, 0, previousLength);
                digest.putBytes(value.bytes, value.from, value.length);
                long id = generator.keys.decode(previous, 0, previousLength);
                byte[] shown = previous;
                int length = previousLength;
                if (id < 0 || id >= generator.set.n()) {
                    wrong.note(() -> Wrong.show(Arrays.copyOf(shown, length)) + " was never written");
                } else if (!seen.insert(id)) {
                    wrong.note(() -> Wrong.show(Arrays.copyOf(shown, length)) + " is there twice");
                } else if (!expect.check(generator, id, value.bytes, value.from, value.length)) {
                    String what = expect.has(id) ? " has a wrong or old value" : " should have been deleted";
                    wrong.note(() -> Wrong.show(Arrays.copyOf(shown, length)) + what);
                }
                count++;
            }
        }
        long found = count;
        long expected = expect.count();
        if (found != expected) {
            wrong.note(() -> "a scan found " + found + " keys where " + expected + " are expected");
        }
        return new State(wrong, String.format("%016x", digest.getAsLong()));
    }
}
