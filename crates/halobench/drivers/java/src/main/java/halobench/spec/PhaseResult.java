package halobench.spec;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What a phase was found to be; absent fields are {@code null}. */
public final class PhaseResult {
    public String caseName = "";
    public long ops;
    public double seconds;
    public double opsPerS;
    public long userBytes;
    public Latency latency;
    public String histogram;
    public final Map<String, Latency> parts = new TreeMap<>();
    public long backgroundOps;
    public double lagS;
    /** Pairs: seconds since the start, and operations done by then. */
    public List<Object[]> series = new ArrayList<>();
    public Usage usage;
    public Memory memory;
    public Space space;
    public long liveBytes;
    public Settled settled;
    public long wrong;
    public List<String> wrongExamples = new ArrayList<>();
    public String readDigest;
    public String digest;
    public Map<String, String> stats = new TreeMap<>();
}
