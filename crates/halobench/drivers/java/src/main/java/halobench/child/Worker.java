package halobench.child;

import halobench.engine.Cursor;
import halobench.engine.Engine;
import halobench.engine.Session;
import halobench.engine.Slice;
import halobench.spec.Kind;
import halobench.spec.Phase;
import halobench.workload.Expect;
import halobench.workload.Generator;
import halobench.workload.Ops;
import halobench.workload.Ranges;

/** One thread's part of a phase: a timed loop for each kind of phase. What it needs again and again it keeps. */
final class Worker {
    /** What all threads of a phase share. */
    record Shared(
            Engine engine, Generator generator, Phase phase, Ops ops, Ranges ranges, Expect expect, long latencyEvery) {}

    /** Operations between two reports of progress. */
    private static final long STRIDE = 64;

    private final Generator generator;
    private final Phase phase;
    private final Ops ops;
    private final Ranges ranges;
    private final Expect expect;
    private final boolean judge;
    private final long begin;
    private final long end;
    private final byte[] key;
    private final byte[] value;
    private final Slice found = new Slice();
    private final Slice at = new Slice();
    private final Previous previous = new Previous();
    /** Read by the sampler. */
    private final Progress progress;

    final Recorder latency;
    final Wrong wrong = new Wrong();
    final ReadDigest digest = new ReadDigest();
    long done;
    long puts;

    Worker(Shared shared, int t, Progress progress) {
        this.generator = shared.generator;
        this.phase = shared.phase;
        this.ops = shared.ops;
        this.ranges = shared.ranges;
        this.expect = shared.expect;
        this.judge = shared.engine.stores();
        this.begin = ops.share(t, phase.threads());
        this.end = ops.share(t + 1, phase.threads());
        this.key = new byte[generator.keys.length()];
        this.value = new byte[generator.values.length()];
        this.latency = new Recorder(shared.latencyEvery);
        this.progress = progress;
    }

    /** Does it; everything in here is timed. */
    void run(Session session) {
        boolean batches = phase.batch() > 1;
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
            case SEEK -> withCursor(session, this::seeks);
            case RANGE -> withCursor(session, this::ranges);
            case ITERATE -> withCursor(session, this::iterate);
            case MIX -> throw new IllegalArgumentException("not yet");
        }
        progress.set(done);
    }

    private interface CursorWork {
        void on(Cursor cursor);
    }

    private static void withCursor(Session session, CursorWork work) {
        try (Cursor cursor = session.cursor()) {
            work.on(cursor);
        }
    }

    private void step() {
        if (++done % STRIDE == 0) {
            progress.set(done);
        }
    }

    /** The version that operation {@code j} writes. */
    private long version(long j) {
        return phase.kind() == Kind.WRITE && phase.order().visitsOnce() ? 0 : j + 1;
    }

    private void fill(long j) {
        long id = ops.id(j);
        generator.keys.encode(id, key);
        generator.values.fill(id, version(j), value);
    }

    private void put(Session session) {
        boolean turn = latency.turn();
        long start = turn ? System.nanoTime() : 0;
        session.put(key, value);
        if (turn) {
            latency.add(System.nanoTime() - start);
        }
        puts++;
    }

    private boolean get(Session session) {
        boolean turn = latency.turn();
        long start = turn ? System.nanoTime() : 0;
        boolean there = session.get(key, found);
        if (turn) {
            latency.add(System.nanoTime() - start);
        }
        return there;
    }

    private void puts(Session session) {
        for (long j = begin; j < end; j++) {
            fill(j);
            put(session);
            step();
        }
    }

    private void deletes(Session session) {
        for (long j = begin; j < end; j++) {
            generator.keys.encode(ops.id(j), key);
            boolean turn = latency.turn();
            long start = turn ? System.nanoTime() : 0;
            session.delete(key);
            if (turn) {
                latency.add(System.nanoTime() - start);
            }
            step();
        }
    }

    /** A latency here is a whole batch's, with the making of its keys and values. */
    private void batches(Session session, boolean put) {
        for (long first = begin; first < end; ) {
            long stop = Math.min(first + phase.batch(), end);
            boolean turn = latency.turn();
            long start = turn ? System.nanoTime() : 0;
            for (long j = first; j < stop; j++) {
                if (put) {
                    fill(j);
                    session.batchPut(key, value);
                } else {
                    generator.keys.encode(ops.id(j), key);
                    session.batchDelete(key);
                }
            }
            session.commit();
            if (turn) {
                latency.add(System.nanoTime() - start);
            }
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
            boolean right;
            boolean there = get(session);
            if (there) {
                digest.add(found);
                right = plain
                        ? generator.values.is(id, 0, found.bytes, found.from, found.length)
                        : expect.check(generator, id, found.bytes, found.from, found.length);
            } else {
                right = !plain && !expect.has(id);
            }
            if (!right && judge) {
                wrongGet(there);
            }
            step();
        }
    }

    private void mixed(Session session) {
        for (long j = begin; j < end; j++) {
            if (ops.writes(j)) {
                fill(j);
                put(session);
            } else {
                long id = ops.id(j);
                generator.keys.encode(id, key);
                boolean there = get(session);
                boolean right = there
                        && Expect.plausible(generator, ops, id, found.bytes, found.from, found.length);
                if (!right && judge) {
                    wrongGet(there);
                }
            }
            step();
        }
    }

    private void wrongGet(boolean there) {
        wrong.note(() -> Wrong.show(key)
                + (there ? " has a wrong or old value, of " + found.length + " bytes" : " was not found"));
    }

    private void seeks(Cursor cursor) {
        for (long j = begin; j < end; j++) {
            generator.keys.encode(ops.id(j), key);
            boolean turn = latency.turn();
            long start = turn ? System.nanoTime() : 0;
            boolean right = cursor.seek(key);
            if (right) {
                cursor.key(at);
                right = at.is(key);
            }
            if (turn) {
                latency.add(System.nanoTime() - start);
            }
            if (!right && judge) {
                wrong.note(() -> "a seek to " + Wrong.show(key) + " did not find it");
            }
            step();
        }
    }

    private void ranges(Cursor cursor) {
        boolean backward = phase.backward();
        int size = phase.rangeSize();
        for (long j = begin; j < end; j++) {
            generator.keys.encode(ops.id(j), key);
            boolean turn = latency.turn();
            long start = turn ? System.nanoTime() : 0;
            int count = 0;
            boolean more = backward ? cursor.seekBack(key) : cursor.seek(key);
            boolean ordered = more;
            previous.clear();
            while (more) {
                cursor.key(at);
                ordered &= count > 0 || at.is(key);
                ordered &= previous.precedes(at, backward);
                cursor.value(found);
                digest.add(found);
                count++;
                more = count < size && (backward ? cursor.prev() : cursor.next());
            }
            if (turn) {
                latency.add(System.nanoTime() - start);
            }
            if (judge) {
                // In order, from the right key, the right number, to the right key with its value: all were there.
                long last = ranges.last(j);
                boolean right = ordered
                        && count == ranges.count(j)
                        && generator.keys.decode(previous.bytes(), 0, previous.length()) == last
                        && expect.check(generator, last, found.bytes, found.from, found.length);
                if (!right) {
                    wrong.note(() -> "a range of " + size + " from " + Wrong.show(key) + " was wrong");
                }
            }
            step();
        }
    }

    private void iterate(Cursor cursor) {
        boolean backward = phase.backward();
        int length = generator.values.length();
        long expected = expect.count();
        boolean more = backward ? cursor.seekLast() : cursor.seekFirst();
        // The engine that stores nothing never says that it is done.
        while (more && (judge || done < expected)) {
            cursor.key(at);
            if (!previous.precedes(at, backward) && judge) {
                wrong.note(() -> "a pass returned " + Wrong.show(at.copy()) + " out of order");
            }
            cursor.value(found);
            digest.add(found);
            if (found.length != length && judge) {
                wrong.note(() -> Wrong.show(previous.key()) + " has a value of another length");
            }
            step();
            more = backward ? cursor.prev() : cursor.next();
        }
        long count = done;
        if (judge && count != expected) {
            wrong.note(() -> "a pass found " + count + " keys where " + expected + " are expected");
        }
    }
}
