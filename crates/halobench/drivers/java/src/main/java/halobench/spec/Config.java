package halobench.spec;

/** The terms, equal for all engines; sizes are in bytes. */
public record Config(
        long writeBuffer, long cache, Durability durability, String compression, int threads, long expectedBytes) {}
