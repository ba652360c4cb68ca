package halobench.durability;

/** What a check found on its way. */
public final class Checked {
    public double openS;
    public long entries;
    public long disagreements;
    public String example = "";
}
