package halobench.child;

import halobench.workload.Arrivals;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps a thread of an open loop to its schedule. Moments are absolute: one late operation does not move the next, so that
 * the wait of those behind a stall is measured.
 */
final class Pace {
    /** A thread that is early by less than this spins; before, it sleeps, from which the kernel wakes it 50 us late. */
    private static final long SPIN_NS = 80_000;
    /** Longest sleep between two looks at whether all is over. */
    private static final long NAP_NS = 20_000_000;

    private final Arrivals arrivals;
    private final long start = System.nanoTime();
    private double dueS;
    private long due = start;
    private long lag;

    /** A schedule that begins now. */
    Pace(Arrivals arrivals) {
        this.arrivals = arrivals;
    }

    /** Waits until the {@code batch} operations from {@code j} on are due; false if {@code over} came true meanwhile. */
    boolean await(long j, long batch, AtomicBoolean over) {
        dueS += arrivals.gap(j, batch);
        due = start + (long) (Math.min(dueS, 1e9) * 1e9);
        while (!over.getOpaque()) {
            long early = due - System.nanoTime();
            if (early <= 0) {
                lag = Math.max(lag, -early);
                return true;
            }
            if (early > SPIN_NS) {
                LockSupport.parkNanos(Math.min(early - SPIN_NS, NAP_NS));
            } else {
                Thread.onSpinWait();
            }
        }
        return false;
    }

    /** Nanoseconds since the moment that was last waited for. */
    long sinceDue() {
        return System.nanoTime() - due;
    }

    /** The most seconds that an operation began behind its moment. */
    double lagS() {
        return lag * 1e-9;
    }
}
