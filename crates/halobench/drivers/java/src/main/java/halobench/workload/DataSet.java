package halobench.workload;

/** A set of keys and values, as a plan tells it: ids run from 0 to {@code n}; sizes are in bytes. */
public record DataSet(long n, Encoding encoding, int keyLen, int valueLen, ValueKind valueKind, long seed) {}
