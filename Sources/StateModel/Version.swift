import CLinux

/// The version of `stated`.
public enum Version {
    /// The version of the daemon, its client and its libraries.
    public static let current = "0.1.0"

    /// The version, and in a package the commit that it was made from: `0.1.0 (3fe12a6f)`.
    package static var withCommit: String {
        let commit = String(cString: clinux_commit())
        return commit.isEmpty ? current : "\(current) (\(commit))"
    }
}
