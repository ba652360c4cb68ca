package halobench.workload;

/** What values are made of. */
public enum ValueKind {
    HALF,
    INCOMPRESSIBLE,
    RAMP,
    TEXT,
    JSON
}
