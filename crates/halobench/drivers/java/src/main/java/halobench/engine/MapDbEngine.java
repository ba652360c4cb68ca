package halobench.engine;

import halobench.spec.Config;
import halobench.spec.Durability;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.mapdb.BTreeMap;
import org.mapdb.DB;
import org.mapdb.DBMaker;
import org.mapdb.Serializer;

/**
 * MapDB: a B-link tree of byte arrays in a mapped file.
 *
 * <p>With {@code transactionEnable} each commit goes through a log and is synced. A commit is the whole database's, not a
 * thread's: so that a batch is committed whole, writers take turns from a batch's first put to its commit. Without
 * transactions there are no commits, batches are single puts, and a process that is killed leaves a file that may be
 * damaged. Cursors are MapDB's iterators, which are not views of one moment.
 */
final class MapDbEngine implements Engine {
    private final DB db;
    private final BTreeMap<byte[], byte[]> map;
    private final boolean transactions;
    private final ReentrantLock turn = new ReentrantLock();

    MapDbEngine(Path dir, Config config) {
        transactions = config.durability() != Durability.NONE;
        DBMaker.Maker maker = DBMaker.fileDB(dir.resolve("map.db").toFile()).fileMmapEnableIfSupported();
        if (transactions) {
            maker = maker.transactionEnable();
        }
        db = maker.make();
        map = db.treeMap("kv")
                .keySerializer(Serializer.BYTE_ARRAY)
                .valueSerializer(Serializer.BYTE_ARRAY)
                .createOrOpen();
        if (transactions) {
            db.commit();
        }
    }

    @Override
    public Session session() {
        return new MapDbSession();
    }

    /** There is no background work; what is not yet on the disk is synced. */
    @Override
    public boolean settle(Duration limit) {
        db.commit();
        return true;
    }

    @Override
    public void close() {
        if (transactions) {
            db.commit();
        }
        db.close();
    }

    private final class MapDbSession implements Session {
        private boolean inBatch;

        private void begin() {
            if (transactions && !inBatch) {
                turn.lock();
                inBatch = true;
            }
        }

        @Override
        public void put(byte[] key, byte[] value) {
            begin();
            map.put(key.clone(), value.clone());
            commit();
        }

        @Override
        public void delete(byte[] key) {
            begin();
            map.remove(key);
            commit();
        }

        @Override
        public void batchPut(byte[] key, byte[] value) {
            begin();
            map.put(key.clone(), value.clone());
        }

        @Override
        public void batchDelete(byte[] key) {
            begin();
            map.remove(key);
        }

        @Override
        public void commit() {
            if (inBatch) {
                try {
                    db.commit();
                } finally {
                    inBatch = false;
                    turn.unlock();
                }
            }
        }

        @Override
        public boolean get(byte[] key, Slice value) {
            byte[] found = map.get(key);
            if (found == null) {
                return false;
            }
            value.set(found, 0, found.length);
            return true;
        }

        @Override
        public Cursor cursor() {
            return new MapDbCursor();
        }

        @Override
        public void close() {
            if (inBatch) {
                inBatch = false;
                turn.unlock();
            }
        }
    }

    private final class MapDbCursor implements Cursor {
        private Iterator<Map.Entry<byte[], byte[]>> entries;
        private Map.Entry<byte[], byte[]> at;
        private boolean backward;

        private boolean step() {
            at = entries.hasNext() ? entries.next() : null;
            return at != null;
        }

        @Override
        public boolean seekFirst() {
            backward = false;
            entries = map.entryIterator();
            return step();
        }

        @Override
        public boolean seek(byte[] key) {
            backward = false;
            entries = map.entryIterator(key.clone(), true, null, false);
            return step();
        }

        @Override
        public boolean next() {
            return backward ? turn(at.getKey()) : step();
        }

        /** A cursor that turns round goes on from a new iterator. */
        private boolean turn(byte[] key) {
            backward = !backward;
            entries = backward
                    ? map.descendingEntryIterator(null, false, key, false)
                    : map.entryIterator(key, false, null, false);
            return step();
        }

        @Override
        public boolean seekLast() {
            backward = true;
            entries = map.descendingEntryIterator();
            return step();
        }

        @Override
        public boolean seekBack(byte[] key) {
            backward = true;
            entries = map.descendingEntryIterator(null, false, key.clone(), true);
            return step();
        }

        @Override
        public boolean prev() {
            return backward ? step() : turn(at.getKey());
        }

        @Override
        public void key(Slice key) {
            byte[] bytes = at.getKey();
            key.set(bytes, 0, bytes.length);
        }

        @Override
        public void value(Slice value) {
            byte[] bytes = at.getValue();
            value.set(bytes, 0, bytes.length);
        }
    }
}
