package halobench.child;

import halobench.engine.Cursor;
import halobench.engine.Session;
import halobench.engine.Slice;
import halobench.workload.Bits;
import halobench.workload.Mixed;
import halobench.workload.Racing;
import halobench.workload.Sorted;
import halobench.workload.Turn;

/**
 * A thread's part of a mix of operations, each drawn by its share.
 *
 * <p>While threads write, a read may return what was there before or any version that the phase writes to that key, but
 * behind a thread's own put not what was there before. Scans are judged by their order and by the loaded keys, which are
 * always there; what the mix inserts may or may not be seen, except that a thread's gets must find its own inserts.
 */
final class MixWork {
    /** One scan in so many is gone over again, untimed, and every entry checked. */
    private static final long INSPECT = 64;

    private final Worker worker;
    private final Mixed mixed;
    private final Racing racing;
    private final Sorted sorted;
    private final boolean backward;
    /** Loaded ids that this thread has overwritten. */
    private final Bits mine;
    /** Inserted ids lie below here. */
    private final long limit;
    private long next;
    private long own;

    MixWork(Worker worker) {
        this.worker = worker;
        this.mixed = worker.shared.mixed();
        this.racing = worker.racing;
        this.sorted = worker.shared.sorted();
        this.backward = worker.phase.backward();
        this.mine = new Bits(mixed.ops().ids());
        this.next = mixed.first() + mixed.inserts(0, worker.begin);
        this.limit = next + mixed.inserts(worker.begin, worker.ops.count());
    }

    void run(Session session) {
        Watch watch = worker.watch;
        for (long j = worker.begin; j < worker.end; j++) {
            Turn turn = mixed.turn(j);
            long id = switch (turn) {
                case INSERT -> next;
                case READ -> mixed.readId(j, own, next);
                default -> mixed.id(j);
            };
            switch (turn) {
                case INSERT -> worker.fill(id, 0);
                case UPDATE, MODIFY -> worker.fill(id, worker.shared.version(j));
                default -> worker.generator.keys.encode(id, worker.key);
            }
            if (!watch.go(j, 1)) {
                break;
            }
            Recorder recorder = watch.parts[turn.ordinal()];
            switch (turn) {
                case INSERT, UPDATE -> worker.put(session, recorder);
                case READ -> {
                    boolean there = worker.get(session, recorder);
                    judgeGet(there, there && right(id, worker.found));
                }
                case MODIFY -> modify(session, recorder, id);
                case SCAN -> scan(session, recorder, id, mixed.scanLength(j));
            }
            if (turn == Turn.INSERT) {
                next++;
                own++;
            } else if (turn == Turn.UPDATE || turn == Turn.MODIFY) {
                mine.insert(id);
            }
            worker.step();
        }
    }

    /** What was read is judged between the get and the put, within the time: it is lent until then. */
    private void modify(Session session, Recorder recorder, long id) {
        long begun = worker.watch.begin(recorder);
        boolean there = session.get(worker.key, worker.found);
        boolean right = there && seen(id, worker.found);
        session.put(worker.key, worker.value);
        worker.watch.end(recorder, begun);
        worker.puts++;
        judgeGet(there, right);
    }

    private void judgeGet(boolean there, boolean right) {
        if (!right && worker.judge) {
            worker.wrongGet(there, worker.found.length);
        }
    }

    private boolean seen(long id, Slice value) {
        return racing.seen(worker.generator, id, value.bytes, value.from, value.length, mine.get(id));
    }

    /** Whether {@code id} may have this value now. */
    private boolean right(long id, Slice value) {
        if (id < mixed.ops().ids()) {
            return seen(id, value);
        }
        if (id >= mixed.first() && id < limit) {
            return worker.generator.values.is(id, 0, value.bytes, value.from, value.length);
        }
        // An earlier mix inserted it.
        return racing.plausible(worker.generator, id, value.bytes, value.from, value.length);
    }

    private void scan(Session session, Recorder recorder, long id, int size) {
        Walk walk = worker.walk;
        long begun = worker.watch.begin(recorder);
        try (Cursor cursor = session.cursor()) {
            walk.go(cursor, worker.key, size, backward);
            worker.watch.end(recorder, begun);
            if (worker.judge && !scanIsRight(cursor, id, size)) {
                worker.wrong.note(() -> "a scan of " + size + " from " + Wrong.show(worker.key) + " was wrong");
            }
        }
    }

    /** Whether the walk from the loaded {@code id} can be right. */
    private boolean scanIsRight(Cursor cursor, long id, int size) {
        Walk walk = worker.walk;
        if (!walk.ordered || !walk.exact) {
            return false;
        }
        long last = worker.generator.keys.decode(walk.previous.bytes(), 0, walk.previous.length());
        if (last < 0 || last >= worker.generator.set.n()) {
            return false;
        }
        // No known key was left out, and if the scan ended early, it was at the end of all keys.
        long between = sorted.between(id, last, backward);
        return between <= walk.count
                && (walk.count == size || between == sorted.toEnd(id, backward))
                && right(last, walk.value)
                && (worker.done % INSPECT != 0 || inspect(cursor, id));
    }

    /**
     * Goes over a scan again, on the same view: every key is one that may be there, none that must be is left out, and every
     * value is one that its key may have. (MapDB has no views: what its cursor sees then may be newer, and so is right too,
     * but a key that was inserted meanwhile moves the end.)
     */
    private boolean inspect(Cursor cursor, long id) {
        int expected = worker.walk.count;
        Previous previous = worker.walk.previous;
        boolean more = backward ? cursor.seekBack(worker.key) : cursor.seek(worker.key);
        int count = 0;
        long known = 0;
        long last = -1;
        previous.clear();
        while (more) {
            cursor.key(worker.at);
            if (!previous.precedes(worker.at, backward)) {
                return false;
            }
            last = worker.generator.keys.decode(previous.bytes(), 0, previous.length());
            cursor.value(worker.found);
            if (last < 0 || last >= worker.generator.set.n() || !right(last, worker.found)) {
                return false;
            }
            known += worker.expect.has(last) ? 1 : 0;
            count++;
            more = count < expected && (backward ? cursor.prev() : cursor.next());
        }
        return count == expected && known == sorted.between(id, last, backward);
    }
}
