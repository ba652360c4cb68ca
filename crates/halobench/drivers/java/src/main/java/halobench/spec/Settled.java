package halobench.spec;

/** After the engine's background work was awaited. */
public record Settled(double seconds, boolean done, Usage usage, Space space) {}
