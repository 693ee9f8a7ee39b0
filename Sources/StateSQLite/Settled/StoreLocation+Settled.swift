import StatePlatform

extension StoreLocation {
    /// The directory of the log of a settled store.
    package var logDirectory: String {
        ownsDirectory ? directory + "/log" : database + "-log"
    }

    /// The same while a restore or a salvage writes it.
    package var unfinishedLog: String {
        ownsDirectory ? directory + "/log.salvage" : database + "-log.salvage"
    }

    /// Whether the files are those of a settled store, as far as they tell: if its database is damaged or
    /// missing, the directory of the log does.
    package var isSettled: Bool {
        access(logDirectory, F_OK) == 0 || headerFormat == Int(SettledDatabase.formatVersion)
    }

    /// The format in the header of the database; nil if that cannot be read.
    ///
    /// https://www.sqlite.org/fileformat2.html#user_version_number
    private var headerFormat: Int? {
        guard let descriptor = try? StoreLocation.open(database) else {
            return nil
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count else { return nil }
        return bytes.number(at: 60, bytes: 4)
    }
}
