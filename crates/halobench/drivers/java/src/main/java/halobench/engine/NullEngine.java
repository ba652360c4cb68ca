package halobench.engine;

import java.time.Duration;

/** The engine that does nothing: what remains is this driver's own cost. */
public final class NullEngine implements Engine {
    private static final byte[] NOTHING = {};
    /** Takes what was touched, so that the compiler cannot drop the work that made the bytes. */
    private static volatile long sink;

    @Override
    public Session session() {
        return new NullSession();
    }

    @Override
    public boolean settle(Duration limit) {
        return true;
    }

    @Override
    public boolean stores() {
        return false;
    }

    @Override
    public void close() {}

    private static final class NullSession implements Session {
        private long sum;

        private void touch(byte[] bytes) {
            sum += bytes.length == 0 ? 0 : bytes[0] + bytes[bytes.length - 1];
        }

        @Override
        public void put(byte[] key, byte[] value) {
            touch(key);
            touch(value);
        }

        @Override
        public void delete(byte[] key) {
            touch(key);
        }

        @Override
        public void batchPut(byte[] key, byte[] value) {
            put(key, value);
        }

        @Override
        public void batchDelete(byte[] key) {
            delete(key);
        }

        @Override
        public void commit() {}

        @Override
        public boolean get(byte[] key, Slice value) {
            touch(key);
            value.set(NOTHING, 0, 0);
            return true;
        }

        @Override
        public Cursor cursor() {
            return new NullCursor();
        }

        @Override
        public void close() {
            sink = sum;
        }
    }

    /** Stays wherever it was sent, for ever: it has no end. */
    private static final class NullCursor implements Cursor {
        private byte[] at = NOTHING;

        @Override
        public boolean seekFirst() {
            return true;
        }

        @Override
        public boolean seek(byte[] key) {
            at = key;
            return true;
        }

        @Override
        public boolean next() {
            return true;
        }

        @Override
        public boolean seekLast() {
            return true;
        }

        @Override
        public boolean seekBack(byte[] key) {
            return seek(key);
        }

        @Override
        public boolean prev() {
            return true;
        }

        @Override
        public void key(Slice key) {
            key.set(at, 0, at.length);
        }

        @Override
        public void value(Slice value) {
            value.set(at, 0, at.length);
        }
    }
}
