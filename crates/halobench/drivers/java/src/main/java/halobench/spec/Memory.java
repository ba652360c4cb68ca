package halobench.spec;

/** Peaks of resident memory, in bytes: the process's own, mapped files, shared memory; the harness's own part. */
public record Memory(long anon, long file, long shmem, long harness) {}
