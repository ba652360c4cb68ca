package halobench.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import halobench.spec.Mix;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** The generators against the vectors of docs/lab/vectors.tsv. */
class VectorsTest {
    private static long number(String text) {
        return Long.parseUnsignedLong(text);
    }

    private static int small(String text) {
        return Integer.parseInt(text);
    }

    private static <T extends Enum<T>> T named(Class<T> type, String word) {
        return Enum.valueOf(type, word.toUpperCase(Locale.ROOT));
    }

    private static byte[] value(String[] f) {
        byte[] value = new byte[small(f[2])];
        new Values(named(ValueKind.class, f[1]), value.length, number(f[3])).fill(number(f[4]), number(f[5]), value);
        return value;
    }

    private static String computed(String[] f) {
        HexFormat hex = HexFormat.of();
        switch (f[0]) {
            case "draw":
                return hex.toHexDigits(Rng.at(number(f[1]), number(f[2])));
            case "stream":
                return hex.toHexDigits(Rng.stream(number(f[1]), number(f[2])));
            case "key": {
                Keys keys = new Keys(named(Encoding.class, f[1]), small(f[2]), 1_000_000, number(f[3]));
                byte[] key = new byte[keys.length()];
                keys.encode(number(f[4]), key);
                assertEquals(number(f[4]), keys.decode(key, 0, key.length), "decoded: " + Arrays.toString(f));
                return hex.formatHex(key);
            }
            case "value":
                return hex.formatHex(value(f));
            case "part":
                return hex.formatHex(value(f), small(f[6]), small(f[6]) + 24);
            case "ids": {
                Ops ops = new Ops(named(Order.class, f[1]), number(f[2]), 12, number(f[3]), number(f[4]));
                return LongStream.range(0, 12).mapToObj(j -> "" + ops.id(j)).collect(Collectors.joining(" "));
            }
            case "coins": {
                Ops ops = new Ops(Order.UP, 32, 32, number(f[1]), number(f[2]));
                return LongStream.range(0, 32).mapToObj(j -> ops.writes(j) ? "1" : "0").collect(Collectors.joining());
            }
            case "gap": {
                double gap = new Arrivals(number(f[1]), number(f[2]), 1, 1.0).gap(number(f[3]), 1);
                return hex.toHexDigits(Double.doubleToRawLongBits(gap));
            }
            case "digest": {
                byte[] bytes = f[1].equals("-") ? new byte[0] : hex.parseHex(f[1]);
                return hex.toHexDigits(ReadDigest.of(bytes, 0, bytes.length));
            }
            case "mix":
                return mix(f);
            default:
                throw new AssertionError("a vector of the unknown kind " + f[0]);
        }
    }

    private static String mix(String[] f) {
        int[] shares = Arrays.stream(f[5].split("/")).mapToInt(Integer::parseInt).toArray();
        Mix mix = new Mix(shares[0], shares[1], shares[2], shares[3], shares[4], f[6].equals("1"));
        Ops ops = new Ops(named(Order.class, f[1]), number(f[2]), number(f[9]), number(f[3]), number(f[4]));
        Mixed mixed = new Mixed(ops, mix, small(f[7]), number(f[8]), number(f[3]), number(f[4]));
        long begin = ops.share(small(f[11]), small(f[10]));
        long end = ops.share(small(f[11]) + 1, small(f[10]));
        long next = mixed.first() + mixed.inserts(0, begin);
        long own = 0;
        List<String> words = new ArrayList<>();
        for (long j = begin; j < end; j++) {
            switch (mixed.turn(j)) {
                case INSERT -> {
                    words.add("i" + next);
                    next++;
                    own++;
                }
                case READ -> words.add("r" + mixed.readId(j, own, next));
                case UPDATE -> words.add("u" + mixed.id(j));
                case MODIFY -> words.add("m" + mixed.id(j));
                case SCAN -> words.add("s" + mixed.id(j) + ":" + mixed.scanLength(j));
            }
        }
        return String.join(" ", words);
    }

    @Test
    void generatorsMakeThePublishedVectors() throws Exception {
        String path = System.getProperty("halobench.vectors");
        assertNotNull(path, "-Dhalobench.vectors is the path of vectors.tsv");
        int checked = 0;
        for (String line : Files.readAllLines(Path.of(path))) {
            if (line.startsWith("#")) {
                continue;
            }
            String[] fields = line.split("\t");
            String[] parameters = Arrays.copyOf(fields, fields.length - 1);
            assertEquals(fields[fields.length - 1], computed(parameters), () -> Arrays.toString(parameters));
            checked++;
        }
        assertTrue(checked > 140, checked + " vectors");
    }
}
