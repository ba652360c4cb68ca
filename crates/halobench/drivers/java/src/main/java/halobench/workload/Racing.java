package halobench.workload;

/** What reads may see while writers overwrite: what was there before, and the versions of the writes that go on. */
public record Racing(Expect before, Versions versions) {
    /** Whether these bytes are what {@code id} had before, or are being written to it. */
    public boolean plausible(Generator generator, long id, byte[] bytes, int from, int count) {
        return seen(generator, id, bytes, from, count, false);
    }

    /** The same, but if this thread has written to the id itself, only what is being written counts. */
    public boolean seen(Generator generator, long id, byte[] bytes, int from, int count, boolean written) {
        long version = generator.values.read(id, bytes, from, count);
        if (version < 0) {
            return version == Values.UNVERSIONED;
        }
        if (versions.operation(version) >= 0) {
            return true;
        }
        return !written && before.has(id) && before.survives(id, version);
    }
}
