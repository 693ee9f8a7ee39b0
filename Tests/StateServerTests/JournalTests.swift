import Glibc
import StateServer
import StateTestSupport
import Testing

/// Messages as entries of the journal.
struct JournalTests {
    private let directory: TemporaryDirectory
    private let journal: JournalStage

    init() throws {
        directory = try TemporaryDirectory()
        journal = try JournalStage(path: directory.path(of: "journal"))
    }

    private func message(_ text: String, key: [UInt8]) -> LogMessage {
        let fields = key.withUnsafeBytes { [LogField.key($0), .uid(7), .rule(2)] }
        return LogMessage(.notice, .audit, text, fields)
    }

    @Test(arguments: ["a/key", "two\nlines\n", "", "\n", "=", "a\u{0}\u{FF}"])
    func `an entry has the message, its kind and its fields, whatever is in them`(
        key: String
    ) throws {
        let socket = try #require(JournalSocket(path: journal.path))
        let message = message("what happened", key: Array(key.utf8))
        #expect(socket.send(message.journalEntry("what happened\nand where")))
        let entry = try journal.next()
        #expect(
            entry == [
                "MESSAGE": Array("what happened\nand where".utf8), "PRIORITY": Array("5".utf8),
                "MESSAGE_ID": Array(LogEvent.audit.rawValue.utf8),
                "SYSLOG_IDENTIFIER": Array("stated".utf8), "STATED_KEY": Array(key.utf8),
                "STATED_UID": Array("7".utf8), "STATED_RULE": Array("3".utf8),
            ]
        )
    }

    @Test func `one that is too large for a datagram is a file that nobody can change`() throws {
        let socket = try #require(JournalSocket(path: journal.path))
        let key = [UInt8](repeating: UInt8(ascii: "k"), count: 8 << 20)
        #expect(socket.send(message("large", key: key).journalEntry("large")))
        #expect(try journal.next()["STATED_KEY"] == key)
    }

    @Test func `nobody gets it where nobody listens, until somebody does`() throws {
        let path = directory.path(of: "later")
        let socket = try #require(JournalSocket(path: path))
        let entry = message("here", key: []).journalEntry("here")
        #expect(!socket.send(entry))
        do {
            let first = try JournalStage(path: path)
            #expect(socket.send(entry))
            #expect(try first.next()["MESSAGE"] == Array("here".utf8))
        }
        #expect(!socket.send(entry))
        unlink(path)
        let second = try JournalStage(path: path)
        #expect(socket.send(entry))
        #expect(try second.next()["MESSAGE"] == Array("here".utf8))
    }

    @Test func `each kind has a number of its own, of 128 bits`() {
        let numbers = LogEvent.allCases.map(\.rawValue)
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers.allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) })
    }
}
