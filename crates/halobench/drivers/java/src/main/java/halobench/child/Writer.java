package halobench.child;

import halobench.engine.Session;
import halobench.spec.Background;
import halobench.workload.Generator;

/** One of the background's writers: it overwrites while the phase's own threads read, until they are done. */
final class Writer extends Task {
    private final Shared shared;
    private final Watch watch;
    private final long begin;
    private final long end;
    private final byte[] key;
    private final byte[] value;

    /** Writer {@code t}. */
    Writer(Shared shared, int t) {
        int threads = shared.phase().background().threads();
        this.shared = shared;
        this.watch = new Watch(0, shared.latencyEvery(), shared.quiet());
        this.begin = shared.backgroundOps().share(t, threads);
        this.end = shared.backgroundOps().share(t + 1, threads);
        this.key = new byte[shared.generator().keys.length()];
        this.value = new byte[shared.generator().values.length()];
    }

    @Override
    void run(Session session) {
        Generator generator = shared.generator();
        Background background = shared.phase().background();
        long stream = shared.phase().stream() + Plans.NUMBERS;
        watch.start(generator.set.seed(), stream, background.threads(), background.rate());
        for (long j = begin; j < end; j++) {
            long id = shared.backgroundOps().id(j);
            generator.keys.encode(id, key);
            generator.values.fill(id, shared.backgroundVersions().base() + j + 1, value);
            if (!watch.go(j, 1)) {
                break;
            }
            long begun = watch.begin(watch.main);
            session.put(key, value);
            watch.end(watch.main, begun);
            done++;
        }
    }

    @Override
    Watch watch() {
        return watch;
    }
}
