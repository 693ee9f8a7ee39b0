import CLinux

/// The comparison of all files with their entries, which a directory needs that was lost and is back.
///
/// Until it is done, what was known of the files before it counts: a commit has to note what each file holds.
struct DirectoryComparison {
    private(set) var known: [FilePath: KnownFile] = [:]
    /// When it begins even if files are still changing, on the monotonic clock; nil if none is due.
    private(set) var deadline: Int64?

    var isDue: Bool { deadline != nil }

    /// Keeps what is known of the files of a directory that is not used any more.
    mutating func keep(_ known: [FilePath: KnownFile]) {
        // Of one that is back and not compared yet, less is known.
        if deadline == nil { self.known = known }
    }

    /// Compares the directory within some nanoseconds.
    mutating func begin(within nanoseconds: Int64) {
        deadline = clinux_monotonic_nanoseconds() + nanoseconds
    }

    /// The directory is being compared: what is found there counts.
    mutating func end() { (known, deadline) = ([:], nil) }
}
