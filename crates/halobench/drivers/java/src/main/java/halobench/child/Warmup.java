package halobench.child;

import halobench.engine.Engine;
import halobench.engine.Engines;
import halobench.spec.Background;
import halobench.spec.Kind;
import halobench.spec.Phase;
import halobench.spec.Plan;
import halobench.workload.Expect;
import halobench.workload.Generator;
import halobench.workload.Order;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Warms the virtual machine up, untimed: each sort of phase of the plan is run for at most a second on a small database of
 * its own, which is removed before the real one is opened. What a long-lived process compiles in its first seconds is
 * compiled then; counters are read after it.
 */
final class Warmup {
    /** Keys that a warm-up loads, and others that it leaves for inserts. */
    private static final long KEYS = 20_000;
    private static final double SECONDS = 1;

    private Warmup() {}

    /** Does it. What fails here fails the plan. */
    static void run(Plan plan, Engines.Opener opener, Generator generator) throws Exception {
        // Plans as small as a warm-up are tests.
        if (plan.set().n() < 2 * KEYS) {
            return;
        }
        Generator small = generator.of(2 * KEYS);
        Path dir = Path.of(plan.dir()).resolve("warm-up");
        Path db = dir.resolve("db");
        Files.createDirectories(db);
        Plan warm = new Plan(plan.name(), plan.engine(), dir.toString(), plan.config(), small.set, phases(plan), 0, 1);
        Expect expect = new Expect(small.set.n());
        Engine engine = opener.open(plan.engine(), db, plan.config());
        for (int index = 0; index < warm.phases().size(); index++) {
            new PhaseRun(warm, index, small, expect).run(engine, null);
        }
        engine.close();
        Resources.remove(dir);
        System.gc();
    }

    /** A load, and one phase of each sort that the plan has. */
    private static List<Phase> phases(Plan plan) {
        List<Phase> phases = new ArrayList<>();
        phases.add(small(plan.phases().get(0), Kind.WRITE, Order.UP, 1000, 0, 0));
        List<String> seen = new ArrayList<>();
        for (Phase phase : plan.phases()) {
            String sort = phase.kind() + " " + (phase.batch() > 1) + " " + phase.backward();
            // Deletions would take the keys away that others need.
            if (!seen.contains(sort) && phase.kind() != Kind.DELETE) {
                seen.add(sort);
                phases.add(small(phase, phase.kind(), phase.order(), phase.batch(), phases.size(), SECONDS));
            }
        }
        return phases;
    }

    private static Phase small(Phase p, Kind kind, Order order, long batch, long stream, double seconds) {
        Background background = seconds == 0 || p.background() == null
                ? null
                : new Background(p.background().threads(), p.background().rate(), KEYS);
        return new Phase(p.caseName(), kind, order, KEYS, seconds == 0 ? 1 : p.threads(), batch, p.rangeSize(), false,
                stream, 0, seconds, seconds > 0 && p.backward(), kind == Kind.MIX ? p.mix() : null, background);
    }
}
