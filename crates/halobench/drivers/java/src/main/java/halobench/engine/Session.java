package halobench.engine;

/** One thread's access. Arrays handed in may be changed by the caller after the call. */
public interface Session extends AutoCloseable {
    /** Sets a key, committed on its own. */
    void put(byte[] key, byte[] value);

    /** Removes a key, committed on its own. */
    void delete(byte[] key);

    /** Adds a put to the batch. */
    void batchPut(byte[] key, byte[] value);

    /** Adds a removal to the batch. */
    void batchDelete(byte[] key);

    /** Commits the batch, whole or not at all where the engine can, and empties it. */
    void commit();

    /** Finds the value of a key as of now, and lends it; false if there is none. */
    boolean get(byte[] key, Slice value);

    /** A cursor over a stable view, where the engine has such views, for many seeks. */
    Cursor cursor();

    @Override
    default void close() {}
}
