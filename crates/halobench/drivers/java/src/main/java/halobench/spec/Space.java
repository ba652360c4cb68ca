package halobench.spec;

/** Bytes in a folder: blocks allocated, lengths of the files, their number. */
public record Space(long allocated, long apparent, long files) {}
