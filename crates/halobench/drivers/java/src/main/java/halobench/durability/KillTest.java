package halobench.durability;

import halobench.child.Child;
import halobench.engine.Cursor;
import halobench.engine.Engine;
import halobench.engine.Engines;
import halobench.engine.Session;
import halobench.engine.Slice;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.LinkedBlockingQueue;

/** Commits numbered writes until it is killed, or looks what is left after a kill. */
public final class KillTest {
    private final Task task;
    private final Work work;
    private final Ledger ledger;

    private KillTest(Task task) throws IOException {
        this.task = task;
        work = new Work(task.shape());
        ledger = new Ledger(Path.of(task.ledger()), task.shape().threads());
    }

    /** Does a task. A failure is thrown. */
    public static void run(Task task, Child.Emit emit) throws Exception {
        KillTest test = new KillTest(task);
        if (task.mode().equals("write")) {
            test.write();
        } else {
            emit.event("checked", test.check());
        }
    }

    private Engine open(Checked checked) throws IOException {
        Path db = Path.of(task.db());
        Files.createDirectories(db);
        ledger.state(Ledger.OPENING);
        long start = System.nanoTime();
        Engine engine = Engines.open(task.engine(), db, task.config());
        long took = System.nanoTime() - start;
        if (!engine.stores()) {
            throw new IllegalArgumentException(task.engine() + " stores nothing");
        }
        ledger.openNs(took);
        checked.openS = took * 1e-9;
        return engine;
    }

    /** Commits until killed; returns only if the engine fails. */
    private void write() throws Exception {
        Engine engine = open(new Checked());
        ledger.state(Ledger.OPEN);
        LinkedBlockingQueue<Exception> failures = new LinkedBlockingQueue<>();
        for (int i = 0; i < task.shape().threads(); i++) {
            int thread = i;
            Thread writer = new Thread(
                    () -> {
                        try {
                            commits(engine, thread);
                        } catch (Exception e) {
                            failures.add(e);
                        }
                    },
                    "writer-" + i);
            writer.setDaemon(true);
            writer.start();
        }
        throw failures.take();
    }

    private void commits(Engine engine, int thread) {
        try (Session session = engine.session()) {
            for (long number = ledger.acked(thread) + 1; ; number++) {
                long slot = number % task.shape().slots();
                long keys = work.keysIn(slot);
                ledger.begin(thread, number);
                try {
                    for (long index = 0; index < keys; index++) {
                        long id = work.id(thread, slot, index);
                        if (work.removes(number, index)) {
                            session.batchDelete(work.key(id));
                        } else if (keys == 1) {
                            session.put(work.key(id), work.value(id, number));
                        } else {
                            session.batchPut(work.key(id), work.value(id, number));
                        }
                    }
                    if (keys > 1) {
                        session.commit();
                    }
                } catch (RuntimeException e) {
                    String which = "commit " + number + " of thread " + thread;
                    throw new IllegalStateException(which + ": " + Child.words(e), e);
                }
                ledger.acknowledge(thread, number);
            }
        }
    }

    /** Writes all entries to the dump, and asks for each key once more by {@code get}. */
    private Checked check() throws IOException {
        Checked checked = new Checked();
        Engine engine = open(checked);
        byte[][] scanned = new byte[(int) work.ids()][];
        try (Session session = engine.session()) {
            try (Cursor cursor = session.cursor();
                    OutputStream dump =
                            new BufferedOutputStream(Files.newOutputStream(Path.of(task.dump())), 1 << 16)) {
                scan(cursor, dump, checked, scanned);
            }
            Slice value = new Slice();
            for (int id = 0; id < scanned.length; id++) {
                if (!work.has(id)) {
                    continue;
                }
                boolean there = session.get(work.key(id), value);
                boolean same = there ? scanned[id] != null && value.is(scanned[id]) : scanned[id] == null;
                if (!same) {
                    checked.disagreements++;
                    checked.example = "get and the scan say different things of a key";
                }
            }
        }
        if (task.close()) {
            engine.close();
        }
        return checked;
    }

    private void scan(Cursor cursor, OutputStream dump, Checked checked, byte[][] scanned) throws IOException {
        Slice slice = new Slice();
        for (boolean more = cursor.seekFirst(); more; more = cursor.next()) {
            checked.entries++;
            if (checked.entries > 2 * work.ids()) {
                throw new IllegalStateException("a scan does not end: " + checked.entries + " entries");
            }
            cursor.key(slice);
            byte[] key = slice.copy();
            cursor.value(slice);
            byte[] value = slice.copy();
            long id = work.idOf(key);
            if (id >= 0) {
                scanned[(int) id] = value;
            }
            byte[] lengths = ByteBuffer.allocate(8)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(key.length)
                    .putInt(value.length)
                    .array();
            for (byte[] part : Arrays.asList(lengths, key, value)) {
                dump.write(part);
            }
        }
    }
}
