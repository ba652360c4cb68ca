package halobench.workload;

/** How ids become keys: see docs/lab/generators.md. */
public enum Encoding {
    ORDERED,
    HASHED,
    TIMESTAMP,
    UUID,
    COMPAT
}
