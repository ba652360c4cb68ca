package halobench.spec;

import java.util.ArrayList;
import java.util.List;

/** The end of a plan. */
public final class Ending {
    public double closeS;
    public Space space;
    public Usage usage;
    public long userBytes;
    public long liveBytes;
    public double reopenS;
    public long wrong;
    public List<String> wrongExamples = new ArrayList<>();
}
