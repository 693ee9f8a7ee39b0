import CLinux

/// The comparison of all files with their entries, which is needed when a directory that was lost
/// is back.
///
/// Until it is done, the earlier state of the files counts: a commit must record what each file
/// holds.
struct DirectoryComparison {
    private(set) var known: [FilePath: KnownFile] = [:]
    /// When it begins even if files are still changing, on the monotonic clock; nil if no
    /// comparison is due.
    private(set) var deadline: Int64?

    var isDue: Bool { deadline != nil }

    /// Keeps the known state of the files of a directory that is no longer used.
    mutating func keep(_ known: [FilePath: KnownFile]) {
        // If the directory is back but not compared yet, less is known of it.
        if deadline == nil { self.known = known }
    }

    /// Compares the directory within some nanoseconds.
    mutating func begin(within nanoseconds: Int64) {
        deadline = clinux_monotonic_nanoseconds() + nanoseconds
    }

    /// The directory is being compared: what is found there counts from now on.
    mutating func end() { (known, deadline) = ([:], nil) }
}
