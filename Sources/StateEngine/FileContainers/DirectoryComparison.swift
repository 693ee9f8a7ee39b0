import CLinux

/// The comparison of all files with their entries, which is needed when a directory that was lost
/// is back, or not all of it was read before.
///
/// It is done in pieces, between which others commit. Until it is done, the earlier state of the
/// files counts if the directory was lost: a commit must record what each file holds.
struct DirectoryComparison {
    private(set) var known = PathTable<KnownFile>()
    /// When it begins even if files are still changing, on the monotonic clock; nil if no
    /// comparison is due.
    private(set) var deadline: Int64?
    /// Whether the directory was lost: no file is written until all were compared.
    private(set) var isLost = false
    /// Whether files are being compared.
    private(set) var isBegun = false
    /// The keys whose files may be gone; nil until all files were compared.
    var missing: [Key]?

    var isDue: Bool { deadline != nil }

    /// Keeps the known state of the files of a directory that is no longer used.
    mutating func keep(_ known: PathTable<KnownFile>) {
        // If the directory is back but not compared yet, less is known of it.
        if deadline == nil { self.known = known }
    }

    /// Compares the directory within some nanoseconds; one that was begun begins anew.
    mutating func schedule(within nanoseconds: Int64, isLost: Bool) {
        deadline = clinux_monotonic_nanoseconds() + nanoseconds
        self.isLost = isLost
        (isBegun, missing) = (false, nil)
    }

    mutating func begin() { isBegun = true }

    /// The directory was compared: what was found there counts from now on.
    mutating func end() { self = DirectoryComparison() }
}
