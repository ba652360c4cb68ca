package halobench.child;

import halobench.spec.Memory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Samples memory every 50 ms and progress every second, until it is stopped. */
final class Sampler extends Thread {
    private static final long PERIOD_MS = 50;

    private final LongSupplier done;
    private final CountDownLatch stop = new CountDownLatch(1);
    private Memory peak = new Memory(0, 0, 0, 0);
    private final List<Object[]> series = new ArrayList<>();

    Sampler(LongSupplier done) {
        super("sampler");
        this.done = done;
    }

    @Override
    public void run() {
        long start = System.nanoTime();
        double next = 1;
        boolean more = true;
        while (more) {
            try {
                more = !stop.await(PERIOD_MS, TimeUnit.MILLISECONDS);
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
            if (elapsed >= next || !more) {
                series.add(new Object[] {elapsed, done.getAsLong()});
                next += 1;
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

    /** Seconds and operations done by then; once it is stopped. */
    List<Object[]> series() {
        return series;
    }
}
