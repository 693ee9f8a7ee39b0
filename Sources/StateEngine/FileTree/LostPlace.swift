import StatePlatform
import StateSystem

/// What is wrong with a file or directory that this process uses and that a start would not find.
///
/// If somebody removes or replaces it, the process keeps it open without its name: it would
/// continue to acknowledge writes that are lost when it ends.
package enum LostPlace {
    /// Says that nothing is at `path`; the reason is in `errno`.
    package static func missing(_ path: String) -> String {
        "\(path) is missing (\(lastSystemError())): writes would be lost; "
            + "put it back, or restart with the intended files"
    }

    /// Says that another `kind` is at `path`: a file or a directory.
    package static func replaced(_ path: String, by kind: String) -> String {
        "\(path) was replaced by another \(kind): writes would be lost; "
            + "put the original back, or restart with the intended files"
    }
}

/// `path` from the root on: a later chdir(2) does not change what it names.
package func absolutePath(_ path: String) -> String {
    guard !path.hasPrefix("/"), let current = getcwd(nil, 0) else { return path }
    defer { free(current) }
    return String(cString: current) + "/" + path
}

/// An open directory, and the path that led to it.
struct DirectoryPlace {
    private let path: String
    private let absolute: String
    private let identity: DirectoryIdentity

    /// Records what was found at a path.
    ///
    /// - Parameters:
    ///   - path: The path as it was given; links in it are followed at each check.
    ///   - directory: The directory that was found there.
    /// - Throws: ``FileFailure``, if the directory cannot be asked who it is.
    init(_ path: String, _ directory: FileTree.Directory) throws(FileFailure) {
        self.path = path
        absolute = absolutePath(path)
        identity = try DirectoryIdentity(directory)
    }

    /// Why the path no longer leads to the directory, as a sentence; nil if it does.
    ///
    /// - Complexity: One stat(2).
    var finding: String? {
        if identity.stands(at: absolute) { return nil }
        return access(absolute, F_OK) == 0
            ? LostPlace.replaced(path, by: "directory") : LostPlace.missing(path)
    }
}
