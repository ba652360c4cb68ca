package halobench.child;

import java.util.concurrent.atomic.AtomicLongArray;

/** One thread's count of operations done, in the middle of a cache line or two of its own. */
final class Progress {
    private static final int MIDDLE = 16;

    private final AtomicLongArray line = new AtomicLongArray(2 * MIDDLE);

    /** So many are done. */
    void set(long done) {
        line.setOpaque(MIDDLE, done);
    }

    /** How many are done. */
    long get() {
        return line.getOpaque(MIDDLE);
    }
}
