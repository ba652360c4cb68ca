package halobench.workload;

/** In which order operations visit the ids. */
public enum Order {
    UP,
    DOWN,
    SHUFFLED,
    UNIFORM,
    ZIPF;

    /** Whether the first n operations visit every id once. */
    public boolean visitsOnce() {
        return this == UP || this == DOWN || this == SHUFFLED;
    }
}
