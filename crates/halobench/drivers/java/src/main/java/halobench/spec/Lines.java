package halobench.spec;

import com.google.gson.FieldNamingPolicy;
import com.google.gson.FieldNamingStrategy;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonDeserializer;
import halobench.durability.Task;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;

/** Plans and events as the lines of JSON that parent and child exchange. */
public final class Lines {
    /** Fields have the names of the lab's own program: snake case, and {@code case}, which Java keeps for itself. */
    private static final FieldNamingStrategy NAMES = field -> field.getName().equals("caseName")
            ? "case"
            : FieldNamingPolicy.LOWER_CASE_WITH_UNDERSCORES.translateName(field);

    private static final Gson GSON = new GsonBuilder()
            .setFieldNamingStrategy(NAMES)
            .disableHtmlEscaping()
            // Seeds use all 64 bits.
            .registerTypeAdapter(long.class, (JsonDeserializer<Long>) (json, type, context) ->
                    json.getAsBigInteger().longValue())
            .registerTypeHierarchyAdapter(Enum.class, (JsonDeserializer<Enum<?>>) (json, type, context) ->
                    choice((Class<?>) type, json.getAsString()))
            .create();

    private Lines() {}

    private static Enum<?> choice(Class<?> type, String word) {
        return (Enum<?>) Arrays.stream(type.getEnumConstants())
                .filter(c -> ((Enum<?>) c).name().equals(word.toUpperCase(Locale.ROOT)))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "this driver knows no " + type.getSimpleName() + " \"" + word + "\""));
    }

    /** The plan in a line. */
    public static Plan plan(String line) {
        return GSON.fromJson(line, Plan.class);
    }

    /** The task in a line; null if it is a plan. */
    public static Task task(String line) {
        Task.Line task = GSON.fromJson(line, Task.Line.class);
        return task == null ? null : task.durability();
    }

    /** An event as a line: its kind and what it tells. */
    public static String event(String kind, Object what) {
        return GSON.toJson(Map.of(kind, what));
    }
}
