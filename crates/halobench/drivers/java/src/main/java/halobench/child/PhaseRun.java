package halobench.child;

import halobench.engine.Engine;
import halobench.engine.Session;
import halobench.spec.Kind;
import halobench.spec.Memory;
import halobench.spec.Phase;
import halobench.spec.PhaseResult;
import halobench.spec.Plan;
import halobench.spec.Settled;
import halobench.spec.Usage;
import halobench.workload.DataSet;
import halobench.workload.Expect;
import halobench.workload.Generator;
import halobench.workload.Ops;
import halobench.workload.Ranges;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.HdrHistogram.Histogram;

/** One phase: prepare, start all threads at once, measure, settle, check. */
final class PhaseRun {
    private PhaseRun() {}

    /**
     * Runs {@code phase}, and brings {@code expect} up to date. The first phase is given the counters from before the open:
     * bytes that the engine wrote ahead then are part of what the phase cost.
     */
    static PhaseResult run(Plan plan, Phase phase, Engine engine, Generator generator, Expect expect, Usage opened)
            throws Exception {
        DataSet set = generator.set;
        if (phase.ops() <= 0 || phase.threads() <= 0 || phase.batch() <= 0 || phase.rangeSize() <= 0) {
            throw new IllegalArgumentException("operations, threads, batch and range size must be at least 1");
        }
        if (phase.kind() == Kind.WRITE && phase.order().visitsOnce() && phase.ops() > set.n()) {
            throw new IllegalArgumentException(
                    phase.ops() + " writes of " + set.n() + " keys in an order that visits each once");
        }
        Ops ops = new Ops(phase.order(), set.n(), phase.ops(), set.seed(), phase.stream());
        Ranges ranges = phase.kind() == Kind.RANGE
                ? new Ranges(ops, generator.keys, phase.rangeSize(), phase.backward())
                : null;
        Worker.Shared shared =
                new Worker.Shared(engine, generator, phase, ops, ranges, expect, plan.latencyEvery());
        long harness = ops.memory() + (ranges == null ? 0 : ranges.memory())
                + generator.values.memory() + expect.memory();
        Path dir = Path.of(plan.dir());

        Usage before = Resources.usage();
        if (opened != null) {
            before = before.withWritesOf(opened);
        }
        PhaseResult result = timed(shared);
        result.usage = Resources.usage().since(before);
        result.space = Resources.space(dir);
        Memory peak = result.memory;
        result.memory = new Memory(peak.anon(), peak.file(), peak.shmem(), harness);
        result.caseName = phase.caseName();

        if (phase.settle()) {
            long start = System.nanoTime();
            boolean done = engine.settle(Duration.ofSeconds(plan.settleLimitS()));
            double seconds = (System.nanoTime() - start) * 1e-9;
            result.settled = new Settled(seconds, done, Resources.usage().since(before), Resources.space(dir));
        }
        switch (phase.kind()) {
            case WRITE -> {
                if (phase.order().visitsOnce()) {
                    expect.writeOnce(ops);
                } else {
                    expect.overwrite(ops, phase.threads(), false);
                }
            }
            case MIXED -> expect.overwrite(ops, phase.threads(), true);
            case DELETE -> expect.delete(ops);
            default -> { }
        }
        result.liveBytes = expect.count() * (set.keyLen() + set.valueLen());
        if (phase.kind().changes() && engine.stores()) {
            Check.State state = Check.state(engine, generator, expect);
            result.digest = state.digest();
            add(result, state.wrong());
        }
        result.stats.putAll(engine.stats());
        return result;
    }

    private static void add(PhaseResult result, Wrong wrong) {
        Wrong all = new Wrong();
        all.count = result.wrong;
        all.examples.addAll(result.wrongExamples);
        all.merge(wrong);
        result.wrong = all.count;
        result.wrongExamples = all.examples;
    }

    /** One thread of a phase: waits for the others, then works. */
    private static final class Runner extends Thread {
        private final Worker worker;
        private final Engine engine;
        private final CountDownLatch ready;
        private final CountDownLatch go;
        private long start;
        private long end;
        private Throwable failed;

        Runner(int t, Worker worker, Engine engine, CountDownLatch ready, CountDownLatch go) {
            super("worker-" + t);
            this.worker = worker;
            this.engine = engine;
            this.ready = ready;
            this.go = go;
        }

        @Override
        public void run() {
            boolean counted = false;
            try (Session session = engine.session()) {
                ready.countDown();
                counted = true;
                go.await();
                start = System.nanoTime();
                worker.run(session);
                end = System.nanoTime();
            } catch (Throwable e) {
                failed = e;
            } finally {
                if (!counted) {
                    ready.countDown();
                }
                Resources.leaving();
            }
        }
    }

    /** The part between the start of the first thread and the end of the last. */
    private static PhaseResult timed(Worker.Shared shared) throws Exception {
        Phase phase = shared.phase();
        int threads = phase.threads();
        CountDownLatch ready = new CountDownLatch(threads);
        CountDownLatch go = new CountDownLatch(1);
        List<Progress> progress = new ArrayList<>();
        List<Runner> runners = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            progress.add(new Progress());
            runners.add(new Runner(t, new Worker(shared, t, progress.get(t)), shared.engine(), ready, go));
        }
        runners.forEach(Thread::start);
        ready.await();
        Sampler sampler = new Sampler(() -> progress.stream().mapToLong(Progress::get).sum());
        go.countDown();
        sampler.start();
        for (Runner runner : runners) {
            runner.join();
        }
        sampler.finish();

        PhaseResult result = new PhaseResult();
        List<Recorder> recorders = new ArrayList<>();
        Wrong wrong = new Wrong();
        ReadDigest digest = new ReadDigest();
        long puts = 0;
        long first = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        long origin = runners.get(0).start;
        for (Runner runner : runners) {
            if (runner.failed != null) {
                throw new IllegalStateException(Child.words(runner.failed), runner.failed);
            }
            result.ops += runner.worker.done;
            puts += runner.worker.puts;
            recorders.add(runner.worker.latency);
            wrong.merge(runner.worker.wrong);
            digest.add(runner.worker.digest);
            first = Math.min(first, runner.start - origin);
            last = Math.max(last, runner.end - origin);
        }
        DataSet set = shared.generator().set;
        long removals = phase.kind() == Kind.DELETE ? result.ops : 0;
        result.seconds = Math.max((last - first) * 1e-9, 1e-9);
        result.opsPerS = result.ops / result.seconds;
        result.userBytes = puts * (set.keyLen() + set.valueLen()) + removals * set.keyLen();
        Histogram all = Recorder.merge(recorders);
        result.latency = Recorder.latency(all, phase.batch() > 1);
        result.histogram = Recorder.encoded(all);
        result.series = sampler.series();
        result.memory = sampler.peak();
        boolean reads = phase.kind() == Kind.READ || phase.kind() == Kind.RANGE || phase.kind() == Kind.ITERATE;
        if (reads && shared.engine().stores()) {
            result.readDigest = digest.toString();
        }
        add(result, wrong);
        return result;
    }
}
