package halobench.child;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import halobench.child.Liar.Lie;
import halobench.spec.Background;
import halobench.spec.Config;
import halobench.spec.Durability;
import halobench.spec.Ending;
import halobench.spec.Kind;
import halobench.spec.Mix;
import halobench.spec.Phase;
import halobench.spec.PhaseResult;
import halobench.spec.Plan;
import halobench.workload.DataSet;
import halobench.workload.Encoding;
import halobench.workload.Order;
import halobench.workload.ValueKind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Lies are found out, and an honest engine is not accused. */
class ChildTest {
    private static final long OPS = 600;
    private static final Mix MIX = new Mix(30, 20, 20, 20, 10, true);

    @TempDir
    Path dir;

    private record Outcome(List<PhaseResult> phases, Ending ending) {
        PhaseResult last() {
            return phases.get(phases.size() - 1);
        }
    }

    private static Phase phase(Kind kind, Order order, long stream) {
        return new Phase(kind.name(), kind, order, OPS, 3, kind == Kind.WRITE || kind == Kind.DELETE ? 7 : 1, 20, true,
                stream, 0, 0, false, kind == Kind.MIX ? MIX : null, null);
    }

    private static Phase backward(Phase p) {
        return new Phase(p.caseName(), p.kind(), p.order(), p.ops(), p.threads(), p.batch(), p.rangeSize(), p.settle(),
                p.stream(), p.rate(), p.seconds(), true, p.mix(), p.background());
    }

    private static Phase paced(Phase p, double rate, double seconds, Background background) {
        return new Phase(p.caseName(), p.kind(), p.order(), p.ops(), p.threads(), p.batch(), p.rangeSize(), p.settle(),
                p.stream(), rate, seconds, p.backward(), p.mix(), background);
    }

    private Outcome run(Lie lie, Phase... phases) throws Exception {
        List<Phase> all = new ArrayList<>();
        all.add(phase(Kind.WRITE, Order.UP, 0));
        all.addAll(List.of(phases));
        DataSet set = new DataSet(OPS + 400, Encoding.HASHED, 16, 40, ValueKind.HALF, 5);
        Config config = new Config(1 << 20, 1 << 20, Durability.PROCESS, "none", 3, 1 << 20);
        Plan plan = new Plan("test", "liar", dir.toString(), config, set, all, 1, 1);
        Liar liar = new Liar(lie);
        List<PhaseResult> results = new ArrayList<>();
        List<Ending> ends = new ArrayList<>();
        Child.run(plan, (name, where, terms) -> liar, (kind, what) -> {
            if (what instanceof PhaseResult result) {
                results.add(result);
            } else if (what instanceof Ending ending) {
                ends.add(ending);
            }
        });
        return new Outcome(results, ends.get(0));
    }

    @Test
    void anHonestEngineIsRightInEveryCase() throws Exception {
        for (Kind kind : Kind.values()) {
            for (Order order : Order.values()) {
                for (boolean back : new boolean[] {false, true}) {
                    Phase phase = phase(kind, order, 1);
                    Outcome outcome = run(Lie.HONEST, back ? backward(phase) : phase);
                    PhaseResult last = outcome.last();
                    String what = kind + " " + order + " " + back + ": " + last.wrongExamples;
                    assertEquals(0, last.wrong, what);
                    assertEquals(0, outcome.ending.wrong, what);
                    // Each thread of a pass goes over everything.
                    assertEquals(kind == Kind.ITERATE ? 3 * OPS : OPS, last.ops, what);
                    assertEquals(kind == Kind.ITERATE, last.histogram == null, what);
                    boolean reads = kind == Kind.READ || kind == Kind.RANGE || kind == Kind.ITERATE;
                    assertEquals(reads, last.readDigest != null, what);
                    assertEquals(kind.changes(), last.digest != null, what);
                }
            }
        }
    }

    @Test
    void anHonestEngineIsRightInLongPlans() throws Exception {
        Outcome outcome = run(Lie.HONEST,
                phase(Kind.MIXED, Order.UNIFORM, 1),
                phase(Kind.MIX, Order.ZIPF, 2),
                paced(phase(Kind.READ, Order.UNIFORM, 3), 5000, 0, new Background(2, 0, 100_000)),
                paced(phase(Kind.RANGE, Order.ZIPF, 4), 0, 0, new Background(1, 2000, 1000)),
                paced(phase(Kind.SEEK, Order.UNIFORM, 5), 0, 0, new Background(1, 0, 1000)),
                paced(phase(Kind.ITERATE, Order.UP, 6), 0, 0, new Background(1, 0, 1000)),
                paced(phase(Kind.WRITE, Order.ZIPF, 7), 2000, 0.1, null),
                phase(Kind.RANGE, Order.UNIFORM, 8),
                phase(Kind.DELETE, Order.SHUFFLED, 9),
                phase(Kind.READ, Order.UNIFORM, 10));
        for (PhaseResult result : outcome.phases) {
            assertEquals(0, result.wrong, result.caseName + ": " + result.wrongExamples);
        }
        assertEquals(0, outcome.ending.wrong, outcome.ending.wrongExamples.toString());
        PhaseResult gets = outcome.phases.get(3);
        assertTrue(gets.backgroundOps > 0);
        assertNotNull(gets.parts.get("background"));
        assertNotNull(gets.digest);
        assertNull(gets.readDigest);
        PhaseResult cut = outcome.phases.get(7);
        assertTrue(cut.ops < OPS, "cut off after 0.1 s at 2000 a second: " + cut.ops);
        assertTrue(outcome.phases.get(2).parts.keySet().containsAll(List.of("read", "update", "insert", "scan", "modify")));
    }

    @Test
    void aBackgroundOverKeysThatAreNotThereIsRefused() {
        Exception refused = assertThrows(IllegalStateException.class, () -> run(Lie.HONEST,
                phase(Kind.DELETE, Order.SHUFFLED, 1),
                paced(phase(Kind.READ, Order.UNIFORM, 2), 0, 0, new Background(1, 0, 1000))));
        assertTrue(refused.getMessage().contains("some are not there"), refused.getMessage());
    }

    private void found(Lie lie, Phase... phases) throws Exception {
        for (Phase phase : phases) {
            Outcome outcome = run(lie, phase);
            assertTrue(outcome.last().wrong > 0, lie + " " + phase);
        }
    }

    @Test
    void liesAreFound() throws Exception {
        Phase[] reads = {
            phase(Kind.READ, Order.UNIFORM, 1), phase(Kind.RANGE, Order.UNIFORM, 1),
            backward(phase(Kind.RANGE, Order.UNIFORM, 1)), phase(Kind.ITERATE, Order.UP, 1),
            backward(phase(Kind.ITERATE, Order.UP, 1)), phase(Kind.SEEK, Order.UNIFORM, 1),
            phase(Kind.MIXED, Order.UNIFORM, 1)
        };
        found(Lie.LOSES_KEYS, reads);
        found(Lie.IGNORES_OVERWRITE, phase(Kind.MIXED, Order.UNIFORM, 1), phase(Kind.MIX, Order.UNIFORM, 1),
                phase(Kind.WRITE, Order.ZIPF, 1));
        for (Lie lie : new Lie[] {Lie.REORDERS_SCAN, Lie.SKIPS_IN_SCAN}) {
            found(lie, reads[1], reads[2], reads[3], reads[4]);
        }
        found(Lie.SEEKS_TOO_FAR, reads[1], reads[2], reads[5], phase(Kind.MIX, Order.UNIFORM, 1));
        found(Lie.CORRUPTS_VALUE, reads[0], reads[1], reads[3], phase(Kind.MIX, Order.UNIFORM, 1));
        found(Lie.KEEPS_DELETED, phase(Kind.DELETE, Order.SHUFFLED, 1));
        Outcome outcome = run(Lie.FORGETS_ON_REOPEN, reads[0]);
        assertEquals(0, outcome.last().wrong);
        assertTrue(outcome.ending.wrong > 0);
    }

    @Test
    void aWarmUpIsDoneElsewhereAndLeavesNothing() throws Exception {
        DataSet set = new DataSet(50_000, Encoding.HASHED, 16, 40, ValueKind.HALF, 5);
        Config config = new Config(1 << 20, 1 << 20, Durability.PROCESS, "none", 3, 1 << 20);
        List<Phase> phases = List.of(
                phase(Kind.WRITE, Order.UP, 0), phase(Kind.MIX, Order.ZIPF, 1), phase(Kind.READ, Order.UNIFORM, 2),
                phase(Kind.DELETE, Order.SHUFFLED, 3));
        Plan plan = new Plan("test", "liar", dir.toString(), config, set, phases, 1, 1);
        List<Path> opened = new ArrayList<>();
        Liar real = new Liar(Lie.HONEST);
        Liar scratch = new Liar(Lie.HONEST);
        List<PhaseResult> results = new ArrayList<>();
        Child.run(plan, (name, where, terms) -> {
            opened.add(dir.relativize(where));
            return where.startsWith(dir.resolve("warm-up")) ? scratch : real;
        }, (kind, what) -> {
            if (what instanceof PhaseResult result) {
                results.add(result);
            }
        });
        assertEquals(List.of(Path.of("warm-up", "db"), Path.of("db"), Path.of("db")), opened);
        assertTrue(scratch.size() >= 20_000, "the warm-up loaded " + scratch.size());
        assertTrue(real.size() < 1000, "what the plan says and no more: " + real.size());
        assertEquals(4, results.size());
        results.forEach(r -> assertEquals(0, r.wrong, r.wrongExamples.toString()));
        assertTrue(java.nio.file.Files.notExists(dir.resolve("warm-up")));
    }

    @Test
    void plansThatCannotBeDoneAreRefusedInWords() {
        Phase twice = phase(Kind.READ, Order.UNIFORM, 0);
        Exception e = org.junit.jupiter.api.Assertions.assertThrows(
                IllegalArgumentException.class, () -> run(Lie.HONEST, twice));
        assertEquals("READ: it has the same number, 0, as WRITE", e.getMessage());
    }
}
