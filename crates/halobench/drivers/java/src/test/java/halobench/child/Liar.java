package halobench.child;

import halobench.engine.Cursor;
import halobench.engine.Engine;
import halobench.engine.Session;
import halobench.engine.Slice;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/** An engine for tests: an ordered map that can be told to lie, each lie a bug that engines have had. */
final class Liar implements Engine {
    /** What it does wrong. */
    enum Lie {
        HONEST,
        LOSES_KEYS,
        IGNORES_OVERWRITE,
        REORDERS_SCAN,
        SKIPS_IN_SCAN,
        SEEKS_TOO_FAR,
        CORRUPTS_VALUE,
        KEEPS_DELETED,
        FORGETS_ON_REOPEN
    }

    private final Lie lie;
    private final ConcurrentSkipListMap<byte[], byte[]> map = new ConcurrentSkipListMap<>(Arrays::compareUnsigned);

    Liar(Lie lie) {
        this.lie = lie;
    }

    /** One key in ten, by its last bytes. */
    private static boolean chosen(byte[] key) {
        int hash = 7;
        for (int i = key.length - 1; i >= key.length - 4; i--) {
            hash = hash * 31 + key[i];
        }
        return Integer.remainderUnsigned(hash, 10) == 0;
    }

    @Override
    public Session session() {
        return new LiarSession();
    }

    @Override
    public boolean settle(Duration limit) {
        return true;
    }

    /** The map outlives it, as a folder does. */
    @Override
    public void close() {
        if (lie == Lie.FORGETS_ON_REOPEN) {
            map.keySet().removeIf(Liar::chosen);
        }
    }

    private final class LiarSession implements Session {
        private final List<byte[][]> batch = new ArrayList<>();

        @Override
        public void put(byte[] key, byte[] value) {
            boolean lies = chosen(key);
            if (lies && (lie == Lie.LOSES_KEYS || lie == Lie.IGNORES_OVERWRITE && map.containsKey(key))) {
                return;
            }
            byte[] kept = value.clone();
            if (lies && lie == Lie.CORRUPTS_VALUE) {
                kept[kept.length - 1] ^= 1;
            }
            map.put(key.clone(), kept);
        }

        @Override
        public void delete(byte[] key) {
            if (lie != Lie.KEEPS_DELETED || !chosen(key)) {
                map.remove(key);
            }
        }

        @Override
        public void batchPut(byte[] key, byte[] value) {
            batch.add(new byte[][] {key.clone(), value.clone()});
        }

        @Override
        public void batchDelete(byte[] key) {
            batch.add(new byte[][] {key.clone()});
        }

        @Override
        public void commit() {
            for (byte[][] entry : batch) {
                if (entry.length == 2) {
                    put(entry[0], entry[1]);
                } else {
                    delete(entry[0]);
                }
            }
            batch.clear();
        }

        @Override
        public boolean get(byte[] key, Slice value) {
            byte[] found = map.get(key);
            if (found == null) {
                return false;
            }
            // Lent from the middle of an array, as engines do.
            byte[] lent = new byte[found.length + 5];
            System.arraycopy(found, 0, lent, 3, found.length);
            value.set(lent, 3, found.length);
            return true;
        }

        @Override
        public Cursor cursor() {
            List<Map.Entry<byte[], byte[]>> entries = new ArrayList<>(map.entrySet());
            int middle = entries.size() / 2;
            if (lie == Lie.REORDERS_SCAN && middle > 0) {
                Collections.swap(entries, middle - 1, middle);
            }
            if (lie == Lie.SKIPS_IN_SCAN && middle > 0) {
                entries.remove(middle);
            }
            return new LiarCursor(entries);
        }
    }

    private final class LiarCursor implements Cursor {
        private final List<Map.Entry<byte[], byte[]>> entries;
        private int at;

        LiarCursor(List<Map.Entry<byte[], byte[]>> entries) {
            this.entries = entries;
        }

        private boolean there() {
            return at >= 0 && at < entries.size();
        }

        @Override
        public boolean seekFirst() {
            at = 0;
            return there();
        }

        /** A linear search, since the entries may be out of order; the tests are small. */
        @Override
        public boolean seek(byte[] key) {
            at = 0;
            while (there() && Arrays.compareUnsigned(entries.get(at).getKey(), key) < 0) {
                at++;
            }
            at += lie == Lie.SEEKS_TOO_FAR && chosen(key) ? 1 : 0;
            return there();
        }

        @Override
        public boolean next() {
            at++;
            return there();
        }

        @Override
        public boolean seekLast() {
            at = entries.size() - 1;
            return there();
        }

        @Override
        public boolean seekBack(byte[] key) {
            at = entries.size() - 1;
            while (there() && Arrays.compareUnsigned(entries.get(at).getKey(), key) > 0) {
                at--;
            }
            at -= lie == Lie.SEEKS_TOO_FAR && chosen(key) ? 1 : 0;
            return there();
        }

        @Override
        public boolean prev() {
            at--;
            return there();
        }

        @Override
        public void key(Slice key) {
            byte[] bytes = entries.get(at).getKey();
            key.set(bytes, 0, bytes.length);
        }

        @Override
        public void value(Slice value) {
            byte[] bytes = entries.get(at).getValue();
            value.set(bytes, 0, bytes.length);
        }
    }
}
