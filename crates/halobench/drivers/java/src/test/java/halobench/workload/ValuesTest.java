package halobench.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ValuesTest {
    @Test
    void aValueIsItselfAndNothingElse() {
        for (ValueKind kind : ValueKind.values()) {
            for (int length : new int[] {1, 7, 8, 15, 16, 100, 1000}) {
                Values values = new Values(kind, length, 42);
                byte[] value = new byte[length];
                int whole = kind.isText() ? 16 : 8;
                boolean versioned = kind != ValueKind.RAMP && length >= whole;
                for (long id = 0; id < 50; id++) {
                    String what = kind + " " + length + " " + id;
                    values.fill(id, 3, value);
                    assertTrue(values.is(id, 3, value, 0, length), what);
                    assertEquals(versioned ? 3 : Values.UNVERSIONED, values.read(id, value, 0, length), what);
                    value[length - 1] ^= 1;
                    assertFalse(values.is(id, 3, value, 0, length), what);
                    // A value of nothing but a tag always tells a version: one that nobody wrote.
                    long read = values.read(id, value, 0, length);
                    assertTrue(read == Values.WRONG || length <= whole && read > 1L << 40, what);
                    value[length - 1] ^= 1;
                    assertFalse(values.is(id, 3, value, 0, length - 1), what);
                    if (versioned) {
                        assertFalse(values.is(id, 2, value, 0, length), what);
                        long other = values.read(id + 1, value, 0, length);
                        assertTrue(other == Values.WRONG || other > 1L << 40, what);
                    }
                }
            }
        }
    }

    @Test
    void everyKeyDecodesToItsId() {
        for (Encoding encoding : Encoding.values()) {
            for (int length : new int[] {8, 9, 15, 16, 20, 36, 40, 511}) {
                if (encoding == Encoding.UUID && length < 16) {
                    continue;
                }
                Keys keys = new Keys(encoding, length, 0xFFFFFFFFL, 42);
                byte[] key = new byte[length];
                for (long id : new long[] {0, 1, 2, 999, 65_535, 10_000_000, 0xFFFFFFFEL}) {
                    keys.encode(id, key);
                    assertEquals(id, keys.decode(key, 0, length), encoding + " " + length);
                    // Spoilt keys are no keys of small sets; but any eight bytes are a key of this encoding.
                    key[0] ^= 0x55;
                    long other = keys.decode(key, 0, length);
                    assertTrue(
                            encoding == Encoding.COMPAT || other < 0 || other > 1000,
                            encoding + " " + length + " " + other);
                }
            }
        }
    }
}
