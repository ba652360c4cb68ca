package halobench.spec;

/** Shares of a mix, in percent, and whether gets prefer the newest keys. */
public record Mix(int read, int update, int insert, int scan, int modify, boolean latest) {}
