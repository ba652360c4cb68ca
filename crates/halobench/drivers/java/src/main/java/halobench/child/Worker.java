package halobench.child;

import halobench.engine.Cursor;
import halobench.engine.Session;
import halobench.engine.Slice;
import halobench.spec.Phase;
import halobench.workload.Expect;
import halobench.workload.Generator;
import halobench.workload.Ops;
import halobench.workload.Racing;
import halobench.workload.ReadDigest;

/**
 * One thread's part of a phase: a timed loop for each kind of phase. It does a stretch of the phase's operations from its
 * start on, until the stretch or the phase ends. What it needs again and again it keeps.
 */
final class Worker extends Task {
    /** Operations between two reports of progress. */
    private static final long STRIDE = 64;
    /** Of a pass whose values have no digest to be compared with, one entry in so many has its value checked. */
    private static final long SAMPLE = 16;

    final Shared shared;
    final Generator generator;
    final Phase phase;
    final Ops ops;
    final Expect expect;
    final Racing racing;
    /** Whether answers are judged. */
    final boolean judge;
    final long begin;
    final long end;
    final byte[] key;
    final byte[] value;
    final Slice found = new Slice();
    final Slice at = new Slice();
    final Walk walk = new Walk();
    final Watch watch;
    private final Progress progress;

    final Wrong wrong = new Wrong();
    /** Of the values read. */
    long digest;
    long puts;

    /** The part of thread {@code t}. */
    Worker(Shared shared, int t, Progress progress) {
        this.shared = shared;
        this.generator = shared.generator();
        this.phase = shared.phase();
        this.ops = shared.ops();
        this.expect = shared.expect();
        this.racing = shared.racing();
        this.judge = shared.engine().stores();
        this.begin = ops.share(t, phase.threads());
        this.end = ops.share(t + 1, phase.threads());
        this.key = new byte[generator.keys.length()];
        this.value = new byte[generator.values.length()];
        this.watch = new Watch(shared.parts().size(), shared.latencyEvery(), shared.over());
        this.progress = progress;
    }

    @Override
    Watch watch() {
        return watch;
    }

    @Override
    void run(Session session) {
        watch.start(generator.set.seed(), phase.stream(), phase.threads(), phase.rate());
        boolean batches = phase.batch() > 1;
        try {
            switch (phase.kind()) {
                case WRITE -> {
                    if (batches) {
                        batches(session, true);
                    } else {
                        puts(session);
                    }
                }
                case DELETE -> {
                    if (batches) {
                        batches(session, false);
                    } else {
                        deletes(session);
                    }
                }
                case READ -> gets(session);
                case MIXED -> mixed(session);
                case SEEK -> scans(session, true);
                case RANGE -> scans(session, false);
                case ITERATE -> iterate(session);
                case MIX -> new MixWork(this).run(session);
            }
        } finally {
            progress.set(done);
        }
    }

    void step() {
        if (++done % STRIDE == 0) {
            progress.set(done);
        }
    }

    /** Makes the key and the value of {@code id} at {@code version}. */
    void fill(long id, long version) {
        generator.keys.encode(id, key);
        generator.values.fill(id, version, value);
    }

    void put(Session session, Recorder recorder) {
        long begun = watch.begin(recorder);
        session.put(key, value);
        watch.end(recorder, begun);
        puts++;
    }

    boolean get(Session session, Recorder recorder) {
        long begun = watch.begin(recorder);
        boolean there = session.get(key, found);
        watch.end(recorder, begun);
        return there;
    }

    private void puts(Session session) {
        for (long j = begin; j < end; j++) {
            fill(ops.id(j), shared.version(j));
            if (!watch.go(j, 1)) {
                break;
            }
            put(session, watch.main);
            step();
        }
    }

    private void deletes(Session session) {
        for (long j = begin; j < end; j++) {
            generator.keys.encode(ops.id(j), key);
            if (!watch.go(j, 1)) {
                break;
            }
            long begun = watch.begin(watch.main);
            session.delete(key);
            watch.end(watch.main, begun);
            step();
        }
    }

    /** A latency here is a whole batch's, with the making of its keys and values. */
    private void batches(Session session, boolean put) {
        for (long first = begin; first < end; ) {
            long stop = Math.min(first + phase.batch(), end);
            if (!watch.go(first, stop - first)) {
                break;
            }
            long begun = watch.begin(watch.main);
            for (long j = first; j < stop; j++) {
                if (put) {
                    fill(ops.id(j), shared.version(j));
                    session.batchPut(key, value);
                } else {
                    generator.keys.encode(ops.id(j), key);
                    session.batchDelete(key);
                }
            }
            session.commit();
            watch.end(watch.main, begun);
            done += stop - first;
            puts += put ? stop - first : 0;
            progress.set(done);
            first = stop;
        }
    }

    private void gets(Session session) {
        boolean plain = expect.isPlain();
        for (long j = begin; j < end; j++) {
            long id = ops.id(j);
            generator.keys.encode(id, key);
            if (!watch.go(j, 1)) {
                break;
            }
            boolean there = get(session, watch.main);
            boolean right;
            if (!there) {
                right = !plain && !expect.has(id);
            } else {
                digest += ReadDigest.of(found.bytes, found.from, found.length);
                right = plain && racing == null
                        ? generator.values.is(id, 0, found.bytes, found.from, found.length)
                        : rightValue(id, found);
            }
            if (!right && judge) {
                wrongGet(there, found.length);
            }
            step();
        }
    }

    private void mixed(Session session) {
        for (long j = begin; j < end; j++) {
            long id = ops.id(j);
            boolean write = ops.writes(j);
            if (write) {
                fill(id, shared.version(j));
            } else {
                generator.keys.encode(id, key);
            }
            if (!watch.go(j, 1)) {
                break;
            }
            if (write) {
                put(session, watch.parts[1]);
            } else {
                boolean there = get(session, watch.parts[0]);
                boolean right = there
                        ? racing.plausible(generator, id, found.bytes, found.from, found.length)
                        : !expect.has(id);
                if (!right && judge) {
                    wrongGet(there, found.length);
                }
            }
            step();
        }
    }

    /** Whether {@code id} may have this value. */
    private boolean rightValue(long id, Slice value) {
        return racing == null
                ? expect.check(generator, id, value.bytes, value.from, value.length)
                : racing.plausible(generator, id, value.bytes, value.from, value.length);
    }

    void wrongGet(boolean there, int length) {
        wrong.note(() -> Wrong.show(key)
                + (there ? " has a wrong or old value, of " + length + " bytes" : " was not found"));
    }

    /**
     * Seeks or ranges, on one cursor; while others write in the background, on a new one each, whose making is part of the
     * latency, so that it sees what was written before it.
     */
    private void scans(Session session, boolean seek) {
        boolean fresh = phase.background() != null;
        Cursor cursor = fresh ? null : session.cursor();
        try {
            for (long j = begin; j < end; j++) {
                generator.keys.encode(ops.id(j), key);
                if (!watch.go(j, 1)) {
                    break;
                }
                long begun = watch.begin(watch.main);
                if (fresh) {
                    cursor = session.cursor();
                }
                boolean there = false;
                boolean exact = false;
                if (seek) {
                    there = cursor.seek(key);
                    if (there) {
                        cursor.key(at);
                        exact = at.is(key);
                    }
                } else {
                    walk.go(cursor, key, phase.rangeSize(), phase.backward());
                }
                watch.end(watch.main, begun);
                if (seek) {
                    judgeSeek(j, there, exact);
                } else {
                    judgeRange(j);
                }
                step();
                if (fresh) {
                    cursor.close();
                    cursor = null;
                }
            }
        } finally {
            if (cursor != null) {
                cursor.close();
            }
        }
    }

    /** Notes a seek of operation {@code j} that landed where it must not. */
    private void judgeSeek(long j, boolean there, boolean exact) {
        if (exact || !judge) {
            return;
        }
        // Of a key that is not there, all that is known is that what is found lies behind it.
        if (expect.has(ops.id(j)) || there && at.compareTo(key) <= 0) {
            wrong.note(() -> "a seek to " + Wrong.show(key) + " did not find it");
        }
    }

    /** Notes the range of operation {@code j} if it is wrong. */
    private void judgeRange(long j) {
        digest += walk.digest;
        if (!judge) {
            return;
        }
        int size = phase.rangeSize();
        long last = shared.ranges().last(j);
        Previous previous = walk.previous;
        // In order, from the right key, the right number, to the right key with its value: all were there.
        boolean right = walk.ordered
                && walk.exact == expect.has(ops.id(j))
                && walk.count == shared.ranges().count(j)
                && (walk.count == 0 || generator.keys.decode(previous.bytes(), 0, previous.length()) == last)
                && (walk.count == 0 || rightValue(last, walk.value));
        if (!right) {
            wrong.note(() -> "a range of " + size + " from " + Wrong.show(key) + " was wrong");
        }
    }

    private void iterate(Session session) {
        boolean backward = phase.backward();
        int length = generator.values.length();
        long expected = expect.count();
        boolean sample = phase.background() != null || !expect.isFirst();
        Previous previous = walk.previous;
        boolean stopped = false;
        try (Cursor cursor = session.cursor()) {
            boolean more = backward ? cursor.seekLast() : cursor.seekFirst();
            // The engine that stores nothing never says that it is done.
            while (more && (judge || done < expected)) {
                cursor.key(at);
                if (!previous.precedes(at, backward) && judge) {
                    wrong.note(() -> "a pass returned " + Wrong.show(previous.key()) + " out of order");
                }
                cursor.value(found);
                digest += ReadDigest.of(found.bytes, found.from, found.length);
                boolean right = found.length == length;
                if (sample && done % SAMPLE == 0) {
                    long id = generator.keys.decode(previous.bytes(), 0, previous.length());
                    right &= id >= 0 && rightValue(id, found);
                }
                if (!right && judge) {
                    wrong.note(() -> Wrong.show(previous.key()) + " has a wrong or old value");
                }
                step();
                if (!watch.go(done, 1)) {
                    stopped = true;
                    break;
                }
                more = backward ? cursor.prev() : cursor.next();
            }
        }
        long count = done;
        if (judge && !stopped && count != expected) {
            wrong.note(() -> "a pass found " + count + " keys where " + expected + " are expected");
        }
    }
}
