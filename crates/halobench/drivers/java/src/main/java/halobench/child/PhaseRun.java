package halobench.child;

import halobench.engine.Engine;
import halobench.spec.Background;
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
import halobench.workload.Mixed;
import halobench.workload.Ops;
import halobench.workload.Ranges;
import halobench.workload.Sorted;
import halobench.workload.Stretch;
import halobench.workload.Turn;
import halobench.workload.Versions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

/** One phase: prepare, run it timed, settle, check. */
final class PhaseRun {
    /** Most keys for which the digest of reads is computed: it needs eight bytes a key. */
    private static final long DIGEST_KEYS = 1 << 25;

    private final Plan plan;
    private final Phase phase;
    private final Generator generator;
    private final Expect expect;
    private final Ops ops;
    private final Mixed mixed;
    private final Ranges ranges;
    private final Sorted sorted;
    private final Versions versions;
    private final Ops backgroundOps;
    private final Versions backgroundVersions;

    /** Prepares the phase at {@code index}. */
    PhaseRun(Plan plan, int index, Generator generator, Expect expect) {
        this.plan = plan;
        this.phase = plan.phases().get(index);
        this.generator = generator;
        this.expect = expect;
        DataSet set = plan.set();
        long visited = Plans.visited(plan, index);
        ops = new Ops(phase.order(), visited, phase.ops(), set.seed(), phase.stream());
        boolean mix = phase.kind() == Kind.MIX;
        if (mix && !expect.hasAllBelow(visited)) {
            throw new IllegalArgumentException(
                    "a mix needs the " + visited + " keys that were loaded, and some are not there");
        }
        mixed = mix
                ? new Mixed(ops, phase.mix(), phase.rangeSize(), Plans.firstInsert(plan, index), set.seed(), phase.stream())
                : null;
        sorted = mix && phase.mix().scan() > 0 ? new Sorted(generator.keys, expect) : null;
        ranges = phase.kind() == Kind.RANGE
                ? new Ranges(ops, new Sorted(generator.keys, expect), phase.rangeSize(), phase.backward())
                : null;
        versions = Plans.writesFirst(plan, index) ? null : Versions.of(phase.stream(), phase.ops());
        Background background = phase.background();
        if (background != null && !expect.hasAllBelow(visited)) {
            // The writers would put them back, and nobody could say what a range must see.
            throw new IllegalArgumentException(
                    "the background overwrites the " + visited + " keys that were loaded, and some are not there");
        }
        long stream = phase.stream() + Plans.NUMBERS;
        backgroundOps = background == null ? null : Ops.evenly(visited, background.ops(), set.seed(), stream);
        backgroundVersions = background == null ? null : Versions.of(stream, background.ops());
    }

    private long memory() {
        int writers = (phase.background() == null ? 0 : phase.background().threads())
                + (phase.kind().changes() && phase.kind() != Kind.DELETE ? phase.threads() : 0);
        return (mixed == null ? ops.memory() : mixed.memory())
                + (ranges == null ? 0 : ranges.memory())
                + (sorted == null ? 0 : sorted.memory())
                + generator.values.memory()
                + expect.memory()
                + (long) writers * plan.set().valueLen();
    }

    /**
     * Runs it, and brings what is expected up to date. The first phase is given the counters from before the open: bytes that
     * the engine wrote ahead then are part of what the phase cost.
     */
    PhaseResult run(Engine engine, Usage opened) throws InterruptedException {
        Shared shared = new Shared(engine, generator, phase, ops, mixed, ranges, sorted, expect, versions,
                backgroundOps, backgroundVersions, plan.latencyEvery(), new AtomicBoolean(), new AtomicBoolean());
        long harness = memory();
        Path dir = Path.of(plan.dir());

        Usage before = Resources.usage();
        if (opened != null) {
            before = before.withWritesOf(opened);
        }
        Timed.Run run = Timed.run(shared);
        PhaseResult result = run.result();
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
        if (engine.stores()) {
            checkDigest(run.outcome(), result);
        }
        apply(run.outcome());
        result.liveBytes = expect.count() * (plan.set().keyLen() + plan.set().valueLen());
        if ((phase.kind().changes() || phase.background() != null) && engine.stores()) {
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

    /** Compares the digest of all values read with what it must be, where the generator alone can tell. */
    private void checkDigest(Timed.Outcome outcome, PhaseResult result) {
        long count = expect.count();
        if (!expect.isFirst() || phase.background() != null || count > DIGEST_KEYS) {
            return;
        }
        long expected = 0;
        if (phase.kind() == Kind.RANGE) {
            expected = ranges.digest(generator.values, ops, Stretch.done(ops, outcome.done()));
        } else if (phase.kind() == Kind.ITERATE) {
            byte[] scratch = new byte[generator.values.length()];
            for (long id = 0; id < expect.ids(); id++) {
                expected += expect.has(id) ? generator.values.digest(id, scratch) : 0;
            }
            expected *= outcome.done().length;
            for (long done : outcome.done()) {
                if (done != count) {
                    return;
                }
            }
        } else {
            return;
        }
        if (expected != outcome.digest()) {
            Wrong wrong = new Wrong();
            wrong.note(() -> "the values that were read do not add up to those that were written");
            add(result, wrong);
        }
    }

    /** Brings what is expected up to date with what was done. */
    private void apply(Timed.Outcome outcome) {
        Stretch[] done = Stretch.done(ops, outcome.done());
        switch (phase.kind()) {
            case WRITE -> {
                if (versions == null) {
                    for (Stretch part : done) {
                        for (long j = part.start(); j < part.end(); j++) {
                            expect.insert(ops.id(j));
                        }
                    }
                } else {
                    expect.beginEpoch();
                    expect.overwrite(versions, done, ops::id);
                }
            }
            case MIXED -> {
                expect.beginEpoch();
                expect.overwrite(versions, done, j -> ops.writes(j) ? ops.id(j) : -1);
            }
            case DELETE -> {
                for (Stretch part : done) {
                    for (long j = part.start(); j < part.end(); j++) {
                        expect.delete(ops.id(j));
                    }
                }
            }
            case MIX -> {
                for (Stretch part : done) {
                    long next = mixed.first() + mixed.inserts(0, part.start());
                    long end = next + mixed.inserts(part.start(), part.end());
                    for (; next < end; next++) {
                        expect.insert(next);
                    }
                }
                expect.beginEpoch();
                expect.overwrite(versions, done, j -> {
                    Turn turn = mixed.turn(j);
                    return turn == Turn.UPDATE || turn == Turn.MODIFY ? mixed.id(j) : -1;
                });
            }
            default -> { }
        }
        if (backgroundOps != null) {
            expect.beginEpoch();
            expect.overwrite(backgroundVersions, Stretch.done(backgroundOps, outcome.backgroundDone()), backgroundOps::id);
        }
    }
}
