package halobench.child;

import halobench.workload.Arrivals;
import java.util.concurrent.atomic.AtomicBoolean;

/** When a thread's operations begin, how long they take, and when it stops. */
final class Watch {
    private static final long NOT_TIMED = Long.MIN_VALUE;

    /** Latencies where there is one sort of operations. */
    final Recorder main;
    /** Latencies of each sort. */
    final Recorder[] parts;

    private final AtomicBoolean over;
    private Pace pace;

    Watch(int parts, long every, AtomicBoolean over) {
        this.main = new Recorder(every);
        this.parts = new Recorder[parts];
        for (int i = 0; i < parts; i++) {
            this.parts[i] = new Recorder(every);
        }
        this.over = over;
    }

    /** Begins the schedule of an open loop, now. */
    void start(long seed, long stream, int threads, double rate) {
        if (rate > 0) {
            pace = new Pace(new Arrivals(seed, stream, threads, rate));
        }
    }

    /** Whether the {@code batch} operations from {@code j} on may begin: waits until they are due; false if all is over. */
    boolean go(long j, long batch) {
        return pace == null ? !over.getOpaque() : pace.await(j, batch, over);
    }

    /** An operation begins: what {@link #end} is to be told. In an open loop all are timed, from the moment they were due. */
    long begin(Recorder recorder) {
        return pace == null && recorder.turn() ? System.nanoTime() : NOT_TIMED;
    }

    /** It ended. */
    void end(Recorder recorder, long begun) {
        if (pace != null) {
            recorder.add(pace.sinceDue());
        } else if (begun != NOT_TIMED) {
            recorder.add(System.nanoTime() - begun);
        }
    }

    /** Seconds by which an operation of an open loop began too late, at most. */
    double lagS() {
        return pace == null ? 0 : pace.lagS();
    }
}
