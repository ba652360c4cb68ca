package halobench.workload;

/** What an operation of a mix is. */
public enum Turn {
    READ,
    UPDATE,
    INSERT,
    SCAN,
    MODIFY
}
