package halobench.engine;

import halobench.spec.Config;
import java.nio.file.Path;

/** The engines by name. */
public final class Engines {
    private Engines() {}

    /** How a plan's engine is opened; tests put their own in. */
    public interface Opener {
        /** Opens (creating it if need be) the database of the engine {@code name} in {@code dir}. */
        Engine open(String name, Path dir, Config config);
    }

    /** Opens one of this driver's engines. */
    public static Engine open(String name, Path dir, Config config) {
        return switch (name) {
            case "xodus" -> new XodusEngine(dir, config);
            case "mapdb" -> new MapDbEngine(dir, config);
            case "null-java" -> new NullEngine();
            default -> throw new IllegalArgumentException("the Java driver knows no engine " + name);
        };
    }
}
