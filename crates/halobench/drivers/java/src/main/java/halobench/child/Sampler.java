package halobench.child;

import halobench.spec.Memory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/** Samples memory every 50 ms, and progress, until it is stopped; ends a phase whose time is over. */
final class Sampler extends Thread {
    private static final double PERIOD_S = 0.05;

    private final LongSupplier done;
    private final double seconds;
    private final AtomicBoolean over;
    private final CountDownLatch stop = new CountDownLatch(1);
    private final Series series = new Series();
    private Memory peak = new Memory(0, 0, 0, 0);

    /** Sets {@code over} after {@code seconds}, unless these are 0. */
    Sampler(LongSupplier done, double seconds, AtomicBoolean over) {
        super("sampler");
        this.done = done;
        this.seconds = seconds;
        this.over = over;
    }

    @Override
    public void run() {
        long start = System.nanoTime();
        boolean more = true;
        while (more) {
            double left = seconds > 0 ? seconds - (System.nanoTime() - start) * 1e-9 : PERIOD_S;
            if (left <= 0) {
                over.set(true);
            }
            double nap = left > 0 ? Math.min(left, PERIOD_S) : PERIOD_S;
            try {
                more = !stop.await((long) (nap * 1e9), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                more = false;
            }
            Memory now = Resources.memory();
            peak = new Memory(
                    Math.max(peak.anon(), now.anon()),
                    Math.max(peak.file(), now.file()),
                    Math.max(peak.shmem(), now.shmem()),
                    0);
            double elapsed = (System.nanoTime() - start) * 1e-9;
            if (more) {
                series.at(elapsed, done);
            } else {
                series.points.add(new Point(elapsed, done.getAsLong()));
            }
        }
        Resources.leaving();
    }

    /** Stops it, with a last point. */
    void finish() throws InterruptedException {
        stop.countDown();
        join();
    }

    /** The peaks; once it is stopped. */
    Memory peak() {
        return peak;
    }

    /** Pairs: seconds, and operations done by then; once it is stopped. */
    List<Object[]> series() {
        List<Object[]> pairs = new ArrayList<>();
        series.points.forEach(p -> pairs.add(new Object[] {p.seconds, p.done}));
        return pairs;
    }

    /** Seconds since the start, and operations done by then. */
    record Point(double seconds, long done) {}

    /** Points at even distances: fine ones for a minute, then one a second, also of what was. */
    static final class Series {
        private static final double FINE = 0.1;
        private static final double COARSE = 1.0;
        private static final double MINUTE = 60.0;

        List<Point> points = new ArrayList<>();
        /** Points taken, of this fineness. */
        private long taken;
        private boolean coarse;

        /** It is now; takes a point if one is due. */
        void at(double now, LongSupplier done) {
            if (!coarse && now > MINUTE) {
                // The first point of each second stays.
                List<Point> kept = new ArrayList<>();
                for (Point point : points) {
                    boolean same = !kept.isEmpty()
                            && Math.floor(kept.get(kept.size() - 1).seconds) == Math.floor(point.seconds);
                    if (point.seconds >= COARSE && !same) {
                        kept.add(point);
                    }
                }
                points = kept;
                coarse = true;
                taken = (long) (now / COARSE) - 1;
            }
            double step = coarse ? COARSE : FINE;
            if (now >= (taken + 1) * step) {
                points.add(new Point(now, done.getAsLong()));
                taken = (long) (now / step);
            }
        }
    }
}
