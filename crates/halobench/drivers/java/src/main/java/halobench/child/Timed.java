package halobench.child;

import halobench.engine.Session;
import halobench.spec.Kind;
import halobench.spec.Phase;
import halobench.spec.PhaseResult;
import halobench.workload.DataSet;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;

/** The part of a phase between the start of its first thread and the end of its last. */
final class Timed {
    /** What was done: operations of each thread, of each of the background's writers; the digest of the values read. */
    record Outcome(long[] done, long[] backgroundDone, long digest) {}

    /** The result so far, and what was done. */
    record Run(PhaseResult result, Outcome outcome) {}

    private Timed() {}

    /** A thread: waits for the others, then does its task. */
    private static final class Runner<T extends Task> extends Thread {
        private final T task;
        private final Shared shared;
        private final CountDownLatch ready;
        private final CountDownLatch go;
        private long start;
        private long end;
        private Throwable failed;

        Runner(String name, T task, Shared shared, CountDownLatch ready, CountDownLatch go) {
            super(name);
            this.task = task;
            this.shared = shared;
            this.ready = ready;
            this.go = go;
        }

        long done() {
            return task.done;
        }

        @Override
        public void run() {
            boolean counted = false;
            try (Session session = shared.engine().session()) {
                ready.countDown();
                counted = true;
                go.await();
                start = System.nanoTime();
                task.run(session);
                end = System.nanoTime();
            } catch (Throwable e) {
                failed = e;
                shared.abort();
            } finally {
                if (!counted) {
                    // Nobody may be missed, or the others wait for ever.
                    ready.countDown();
                }
                Resources.leaving();
            }
        }
    }

    /** Runs all threads. Where one fails, the others stop soon, and the error says how far they came. */
    static Run run(Shared shared) throws InterruptedException {
        Phase phase = shared.phase();
        int threads = phase.threads();
        int writers = phase.background() == null ? 0 : phase.background().threads();
        CountDownLatch ready = new CountDownLatch(threads + writers);
        CountDownLatch go = new CountDownLatch(1);
        List<Progress> progress = new ArrayList<>();
        List<Runner<Worker>> own = new ArrayList<>();
        List<Runner<Writer>> background = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            progress.add(new Progress());
            own.add(new Runner<>("worker-" + t, new Worker(shared, t, progress.get(t)), shared, ready, go));
        }
        for (int t = 0; t < writers; t++) {
            background.add(new Runner<>("writer-" + t, new Writer(shared, t), shared, ready, go));
        }
        own.forEach(Thread::start);
        background.forEach(Thread::start);
        ready.await();
        Sampler sampler = new Sampler(
                () -> progress.stream().mapToLong(Progress::get).sum(), phase.seconds(), shared.over());
        go.countDown();
        sampler.start();
        for (Thread thread : own) {
            thread.join();
        }
        shared.quiet().set(true);
        for (Thread thread : background) {
            thread.join();
        }
        sampler.finish();
        long ops = own.stream().mapToLong(r -> r.task.done).sum();
        Stream.concat(own.stream(), background.stream()).filter(r -> r.failed != null).findFirst().ifPresent(r -> {
            throw new IllegalStateException("failed after " + ops + " of " + phase.ops() + " operations: "
                    + Child.words(r.failed), r.failed);
        });
        PhaseResult result = result(shared, own, background);
        result.series = sampler.series();
        result.memory = sampler.peak();
        long digest = own.stream().mapToLong(r -> r.task.digest).sum();
        boolean reads = phase.kind() == Kind.READ || phase.kind() == Kind.RANGE || phase.kind() == Kind.ITERATE;
        if (reads && phase.background() == null) {
            result.readDigest = String.format("%016x", digest);
        }
        return new Run(result, new Outcome(done(own), done(background), digest));
    }

    private static <T extends Task> long[] done(List<Runner<T>> runners) {
        return runners.stream().mapToLong(Runner::done).toArray();
    }

    private static PhaseResult result(Shared shared, List<Runner<Worker>> own, List<Runner<Writer>> background) {
        Phase phase = shared.phase();
        DataSet set = shared.generator().set;
        PhaseResult result = new PhaseResult();
        Wrong wrong = new Wrong();
        // Readings of the clock are compared by their differences: they may wrap.
        long origin = own.get(0).start;
        long first = own.stream().mapToLong(r -> r.start - origin).min().orElse(0);
        long last = own.stream().mapToLong(r -> r.end - origin).max().orElse(0);
        long puts = 0;
        for (Runner<Worker> runner : own) {
            result.ops += runner.task.done;
            result.lagS = Math.max(result.lagS, runner.task.watch.lagS());
            puts += runner.task.puts;
            wrong.merge(runner.task.wrong);
        }
        result.backgroundOps = background.stream().mapToLong(r -> r.task.done).sum();
        long removals = phase.kind() == Kind.DELETE ? result.ops : 0;
        result.seconds = Math.max((last - first) * 1e-9, 1e-9);
        result.opsPerS = result.ops / result.seconds;
        result.userBytes = (puts + result.backgroundOps) * (set.keyLen() + set.valueLen()) + removals * set.keyLen();
        result.wrong = wrong.count;
        result.wrongExamples = wrong.examples;

        Histogram whole = Recorder.merge(own.stream().map(r -> r.task.watch.main));
        List<String> names = shared.parts();
        for (int i = 0; i < names.size(); i++) {
            int part = i;
            Histogram some = Recorder.merge(own.stream().map(r -> r.task.watch.parts[part]));
            whole.add(some);
            if (some.getTotalCount() > 0) {
                result.parts.put(names.get(i), Recorder.latency(some, false));
            }
        }
        if (!background.isEmpty()) {
            Histogram writes = Recorder.merge(background.stream().map(r -> r.task.watch().main));
            result.parts.put("background", Recorder.latency(writes, false));
        }
        boolean batches = phase.batch() > 1 && (phase.kind() == Kind.WRITE || phase.kind() == Kind.DELETE);
        result.latency = Recorder.latency(whole, batches);
        result.histogram = Recorder.encoded(whole);
        return result;
    }
}
