/// What a commit does to one file.
struct FileStep: Hashable {
    /// A new file that waits under another name.
    struct Staged: Hashable {
        var path: FilePath
        var stamp: FileStamp
    }

    var target: FilePath
    /// The file that is replaced; nil if there is none.
    var before: FileStamp?
    /// The file that takes its place; nil if the key is deleted.
    var staged: Staged?
}
