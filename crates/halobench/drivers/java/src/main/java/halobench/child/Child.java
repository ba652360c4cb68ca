package halobench.child;

import halobench.engine.Engine;
import halobench.engine.Engines;
import halobench.spec.Ending;
import halobench.spec.PhaseResult;
import halobench.spec.Plan;
import halobench.spec.Usage;
import halobench.workload.Expect;
import halobench.workload.Generator;
import java.nio.file.Files;
import java.nio.file.Path;

/** Runs a plan in this process. */
public final class Child {
    /** Is told what happens: an event's kind and what it tells. */
    public interface Emit {
        void event(String kind, Object what);
    }

    private Child() {}

    /** Runs {@code plan}; engines are opened by {@code opener}. A failure is thrown, and names the phase. */
    public static void run(Plan plan, Engines.Opener opener, Emit emit) throws Exception {
        Generator generator = new Generator(plan.set());
        Plans.check(plan);
        Expect expect = new Expect(plan.set().n());
        Path dir = Path.of(plan.dir());
        Path db = dir.resolve("db");
        Files.createDirectories(db);
        Usage start = Resources.usage();
        Usage opened = start;
        Engine engine = opener.open(plan.engine(), db, plan.config());
        long userBytes = 0;
        long liveBytes = 0;
        for (int index = 0; index < plan.phases().size(); index++) {
            String name = Plans.name(plan.phases().get(index));
            emit.event("begin", name);
            PhaseResult result;
            try {
                result = new PhaseRun(plan, index, generator, expect).run(engine, opened);
            } catch (Exception e) {
                throw new IllegalStateException(name + ": " + words(e), e);
            }
            opened = null;
            userBytes += result.userBytes;
            liveBytes = result.liveBytes;
            emit.event("phase", result);
        }
        emit.event("begin", "close and reopen");
        boolean stores = engine.stores();
        Ending ending = new Ending();
        long closing = System.nanoTime();
        engine.close();
        ending.closeS = (System.nanoTime() - closing) * 1e-9;
        ending.space = Resources.space(dir);
        ending.usage = Resources.usage().since(start);
        ending.userBytes = userBytes;
        ending.liveBytes = liveBytes;
        long opening = System.nanoTime();
        engine = opener.open(plan.engine(), db, plan.config());
        ending.reopenS = (System.nanoTime() - opening) * 1e-9;
        if (stores) {
            Wrong wrong = Check.state(engine, generator, expect).wrong();
            ending.wrong = wrong.count;
            ending.wrongExamples = wrong.examples;
        }
        engine.close();
        emit.event("end", ending);
    }

    /** Removes a folder and all in it. */
    public static void remove(Path dir) {
        Resources.remove(dir);
    }

    /** What went wrong, for people: the message, or where there is none, what it is. */
    public static String words(Throwable e) {
        String message = e.getMessage();
        if (message == null || message.isBlank()) {
            return e.toString();
        }
        boolean ours = e instanceof IllegalArgumentException || e instanceof IllegalStateException;
        return ours ? message : e.getClass().getSimpleName() + ": " + message;
    }
}
