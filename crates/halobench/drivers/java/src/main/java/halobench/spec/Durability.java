package halobench.spec;

/** What a commit survives: nothing, a killed process, that with syncs at intervals, power loss. */
public enum Durability {
    NONE,
    PROCESS,
    INTERVAL,
    SYNC
}
