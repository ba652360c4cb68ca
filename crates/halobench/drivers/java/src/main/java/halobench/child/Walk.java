package halobench.child;

import halobench.engine.Cursor;
import halobench.engine.Slice;
import halobench.workload.ReadDigest;

/** A walk from a key over some entries, and what it found. One is kept for many walks. */
final class Walk {
    final Previous previous = new Previous();
    /** The last entry's value. */
    final Slice value = new Slice();
    private final Slice key = new Slice();
    /** Entries. */
    int count;
    /** Whether the first one has the key itself. */
    boolean exact;
    /** Whether their keys were in order. */
    boolean ordered;
    /** Of their values. */
    long digest;

    /** Seeks {@code from} and goes on to up to {@code size} entries. */
    void go(Cursor cursor, byte[] from, int size, boolean backward) {
        count = 0;
        ordered = true;
        digest = 0;
        exact = false;
        previous.clear();
        boolean more = backward ? cursor.seekBack(from) : cursor.seek(from);
        while (more) {
            cursor.key(key);
            if (count == 0) {
                exact = key.is(from);
            }
            ordered &= previous.precedes(key, backward);
            cursor.value(value);
            digest += ReadDigest.of(value.bytes, value.from, value.length);
            count++;
            more = count < size && (backward ? cursor.prev() : cursor.next());
        }
    }
}
