package halobench.engine;

import halobench.spec.Config;
import halobench.spec.Durability;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import jetbrains.exodus.ArrayByteIterable;
import jetbrains.exodus.ByteIterable;
import jetbrains.exodus.env.Environment;
import jetbrains.exodus.env.EnvironmentConfig;
import jetbrains.exodus.env.EnvironmentImpl;
import jetbrains.exodus.env.Environments;
import jetbrains.exodus.env.Store;
import jetbrains.exodus.env.StoreConfig;
import jetbrains.exodus.env.Transaction;
import jetbrains.exodus.util.DeferredIO;

/**
 * Xodus: a log of immutable tree nodes with a garbage collector behind it.
 *
 * <p>A commit writes its pages to the log's file before it returns ({@code write}, no buffer of the process is left), so
 * that it survives a killed process by default. {@code exodus.log.durableWrite} syncs the file at each commit. Otherwise
 * the file is synced when it is full and, where syncs at intervals are asked for, every ten seconds, its default.
 *
 * <p>Only one write commits against one state of the tree: a transaction that finds another one committed meanwhile is run
 * again. Writers therefore take exclusive transactions, which wait instead. A get has a read-only transaction of its own
 * and so sees the newest commit; a cursor keeps one.
 */
final class XodusEngine implements Engine {
    private static final int DAY_MS = 24 * 3600 * 1000;

    private final EnvironmentImpl env;
    private final Store store;

    XodusEngine(Path dir, Config config) {
        EnvironmentConfig settings = new EnvironmentConfig()
                .setMemoryUsage(config.cache())
                .setLogDurableWrite(config.durability() == Durability.SYNC)
                // The lab may be told to work on any disk.
                .setLogAllowRamDisk(true)
                .setLogAllowRemote(true)
                .setLogAllowRemovable(true)
                .setManagementEnabled(false);
        if (config.durability() == Durability.NONE || config.durability() == Durability.PROCESS) {
            settings.setLogSyncPeriod(DAY_MS);
        }
        Environment opened = Environments.newInstance(dir.toFile(), settings);
        env = (EnvironmentImpl) opened;
        store = env.computeInTransaction(txn -> env.openStore("kv", StoreConfig.WITHOUT_DUPLICATES, txn));
    }

    @Override
    public Session session() {
        return new XodusSession();
    }

    /** Waits for the cleaner, which starts ten seconds after the open, and for the deletion of what it cleaned. */
    @Override
    public boolean settle(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        env.gc();
        env.getGC().waitForPendingGC();
        boolean done = idle();
        while (!done && System.nanoTime() < deadline) {
            Thread.sleep(20);
            done = idle();
        }
        env.flushAndSync();
        return done;
    }

    private boolean idle() {
        int least = env.getEnvironmentConfig().getGcMinUtilization();
        return env.getGC().getUtilizationProfile().totalUtilizationPercent() >= least
                && DeferredIO.getJobProcessor().pendingJobs() == 0
                && DeferredIO.getJobProcessor().pendingTimedJobs() == 0;
    }

    @Override
    public Map<String, String> stats() {
        Map<String, String> stats = new TreeMap<>();
        stats.put("log_files", Long.toString(env.getLog().getNumberOfFiles()));
        stats.put("log_utilization_percent",
                Integer.toString(env.getGC().getUtilizationProfile().totalUtilizationPercent()));
        stats.put("log_cache_hit_rate", Float.toString(env.getLog().getCacheHitRate()));
        return stats;
    }

    @Override
    public void close() {
        env.close();
    }

    /** Lends bytes of Xodus's: an array that it may have made for the purpose. */
    private static void lend(ByteIterable from, Slice to) {
        to.set(from.getBytesUnsafe(), 0, from.getLength());
    }

    private static ByteIterable view(byte[] bytes) {
        return new ArrayByteIterable(bytes);
    }

    private final class XodusSession implements Session {
        private Transaction batch;

        @Override
        public void put(byte[] key, byte[] value) {
            env.executeInExclusiveTransaction(txn -> store.put(txn, view(key), view(value)));
        }

        @Override
        public void delete(byte[] key) {
            env.executeInExclusiveTransaction(txn -> store.delete(txn, view(key)));
        }

        /** What is put is kept by the transaction until its commit. */
        @Override
        public void batchPut(byte[] key, byte[] value) {
            store.put(batch(), view(key.clone()), view(value.clone()));
        }

        @Override
        public void batchDelete(byte[] key) {
            store.delete(batch(), view(key.clone()));
        }

        private Transaction batch() {
            if (batch == null) {
                batch = env.beginExclusiveTransaction();
            }
            return batch;
        }

        @Override
        public void commit() {
            if (batch != null && !batch.commit()) {
                throw new IllegalStateException("Xodus did not commit an exclusive transaction");
            }
            batch = null;
        }

        @Override
        public boolean get(byte[] key, Slice value) {
            Transaction txn = env.beginReadonlyTransaction();
            try {
                ByteIterable found = store.get(txn, view(key));
                if (found == null) {
                    return false;
                }
                lend(found, value);
                return true;
            } finally {
                txn.abort();
            }
        }

        @Override
        public Cursor cursor() {
            return new XodusCursor();
        }

        @Override
        public void close() {
            if (batch != null) {
                batch.abort();
            }
        }
    }

    private final class XodusCursor implements Cursor {
        private final Transaction txn = env.beginReadonlyTransaction();
        private jetbrains.exodus.env.Cursor cursor = store.openCursor(txn);
        private boolean fresh = true;

        /** Xodus has no way back to before the first entry but a new cursor. */
        private void renew() {
            if (!fresh) {
                cursor.close();
                cursor = store.openCursor(txn);
            }
            fresh = false;
        }

        @Override
        public boolean seekFirst() {
            renew();
            return cursor.getNext();
        }

        @Override
        public boolean seek(byte[] key) {
            fresh = false;
            return cursor.getSearchKeyRange(view(key)) != null;
        }

        @Override
        public boolean next() {
            return cursor.getNext();
        }

        @Override
        public boolean seekLast() {
            fresh = false;
            return cursor.getLast();
        }

        @Override
        public boolean seekBack(byte[] key) {
            if (!seek(key)) {
                return cursor.getLast();
            }
            return cursor.getKey().compareTo(view(key)) == 0 || cursor.getPrev();
        }

        @Override
        public boolean prev() {
            return cursor.getPrev();
        }

        @Override
        public void key(Slice key) {
            lend(cursor.getKey(), key);
        }

        @Override
        public void value(Slice value) {
            lend(cursor.getValue(), value);
        }

        @Override
        public void close() {
            cursor.close();
            txn.abort();
        }
    }
}
