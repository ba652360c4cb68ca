package halobench.child;

import halobench.spec.Background;
import halobench.spec.Kind;
import halobench.spec.Mix;
import halobench.spec.Phase;
import halobench.spec.Plan;
import halobench.workload.DataSet;
import halobench.workload.Mixed;
import halobench.workload.Ops;
import halobench.workload.Order;

/** What a plan means before anything is run: which keys its phases visit, and whether it can be done at all. */
final class Plans {
    /** Phases are numbered below here; their backgrounds from here on. */
    static final long NUMBERS = 1 << 20;

    private Plans() {}

    /** How many ids the phase at {@code index} visits: those loaded before it, or all. */
    static long visited(Plan plan, int index) {
        long n = plan.set().n();
        if (plan.phases().get(index).kind() == Kind.WRITE) {
            return n;
        }
        return plan.phases().subList(0, index).stream()
                .filter(p -> p.kind() == Kind.WRITE && p.order() == Order.UP)
                .mapToLong(p -> Math.min(p.ops(), n))
                .max()
                .orElse(n);
    }

    /** The id of the first insert of the mix at {@code index}. */
    static long firstInsert(Plan plan, int index) {
        long before = 0;
        for (Phase phase : plan.phases().subList(0, index)) {
            before += inserts(plan.set(), phase);
        }
        return visited(plan, index) + before;
    }

    /** Inserts among all operations of a phase, done or not. */
    private static long inserts(DataSet set, Phase phase) {
        Mix mix = phase.mix();
        if (phase.kind() != Kind.MIX || mix == null || mix.insert() == 0) {
            return 0;
        }
        Ops coins = new Ops(Order.UP, 1, phase.ops(), set.seed(), phase.stream());
        Mix plain = new Mix(mix.read(), mix.update(), mix.insert(), mix.scan(), mix.modify(), false);
        return new Mixed(coins, plain, 1, 0, set.seed(), phase.stream()).inserts(0, phase.ops());
    }

    /** Whether the puts of the write phase at {@code index} write first values: the head of the plan, each id once. */
    static boolean writesFirst(Plan plan, int index) {
        Phase first = plan.phases().get(0);
        return index == 0 && first.kind() == Kind.WRITE && first.order().visitsOnce();
    }

    /** What people call a phase. */
    static String name(Phase phase) {
        return phase.caseName().isEmpty() ? "load" : phase.caseName();
    }

    /** Fails, in words, on a plan that cannot be done. */
    static void check(Plan plan) {
        for (int index = 0; index < plan.phases().size(); index++) {
            String wrong = misfit(plan, index, plan.phases().get(index));
            if (wrong != null) {
                throw new IllegalArgumentException(name(plan.phases().get(index)) + ": " + wrong);
            }
        }
    }

    private static String misfit(Plan plan, int index, Phase phase) {
        if (phase.ops() <= 0 || phase.threads() <= 0 || phase.batch() <= 0 || phase.rangeSize() <= 0) {
            return "operations, threads, batch and range size must be at least 1";
        }
        if (phase.stream() < 0 || phase.stream() >= NUMBERS) {
            return "the phase's number is " + phase.stream() + ": it must be below " + NUMBERS;
        }
        for (Phase other : plan.phases().subList(0, index)) {
            if (other.stream() == phase.stream()) {
                return "it has the same number, " + phase.stream() + ", as " + name(other);
            }
        }
        long n = plan.set().n();
        if (phase.kind() == Kind.WRITE && phase.order().visitsOnce() && phase.ops() > n) {
            return phase.ops() + " writes of " + n + " keys in an order that visits each once";
        }
        Background background = phase.background();
        if (!sane(phase.rate()) || !sane(phase.seconds()) || background != null && !sane(background.rate())) {
            return "rates and seconds must be numbers from 0 on";
        }
        if (phase.rate() > 0 && phase.kind() == Kind.ITERATE) {
            return "a pass over everything has no arrivals: leave the rate out";
        }
        if (background != null && phase.kind().changes()) {
            return "writers in the background go with gets, seeks, ranges and passes only";
        }
        if (background != null && (background.threads() <= 0 || background.ops() <= 0)) {
            return "the background needs at least one thread and one operation";
        }
        return phase.kind() == Kind.MIX ? misfit(plan, index, phase, phase.mix()) : null;
    }

    private static String misfit(Plan plan, int index, Phase phase, Mix mix) {
        if (mix == null) {
            return "a mix without its shares";
        }
        long sum = (long) mix.read() + mix.update() + mix.insert() + mix.scan() + mix.modify();
        if (sum != 100) {
            return "the shares of a mix add up to " + sum + " %, not to 100";
        }
        long end = firstInsert(plan, index) + inserts(plan.set(), phase);
        return end > plan.set().n()
                ? "the mix inserts ids up to " + end + ", but the data set has " + plan.set().n()
                : null;
    }

    private static boolean sane(double x) {
        return x >= 0 && !Double.isInfinite(x);
    }
}
