package halobench.engine;

/** A position among the entries. Moves say whether there is an entry; key and value are only there if they said so. */
public interface Cursor extends AutoCloseable {
    /** Moves to the first entry. */
    boolean seekFirst();

    /** Moves to the first entry at or behind {@code key}. */
    boolean seek(byte[] key);

    /** Moves on by one. */
    boolean next();

    /** Moves to the last entry. */
    boolean seekLast();

    /** Moves to the last entry at or before {@code key}. */
    boolean seekBack(byte[] key);

    /** Moves back by one. */
    boolean prev();

    /** Lends the key. */
    void key(Slice key);

    /** Lends the value. */
    void value(Slice value);

    @Override
    default void close() {}
}
