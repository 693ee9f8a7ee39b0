/// The version of `stated`.
public enum Version {
    /// The version of the daemon, its client and its libraries.
    public static let current = "0.1.0"
}
