import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

struct ClientTests {
    static let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
    static let hello = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
    static let helloReply = "%1\r\n$5\r\nproto\r\n:3\r\n"
    static let set = "*3\r\n$9\r\nSTATE.SET\r\n$1\r\nk\r\n$1\r\nv\r\n"
    static let setReply = "%2\r\n$8\r\nrevision\r\n:5\r\n$10\r\ndurability\r\n$6\r\nsynced\r\n"

    @Test func `a get is one request and nothing precedes it`() throws {
        let server = try TranscriptServer(.receive(Self.get.utf8.count), .send("$3\r\n0.7\r\n"))
        let client = try Client(socket: server.path)
        #expect(try client.value(for: "k") == Array("0.7".utf8))
        #expect(server.finish() == Self.get)
    }

    @Test func `an absent key is nil and an empty value is a value`() throws {
        let count = Self.get.utf8.count
        let server = try TranscriptServer(
            .receive(count),
            .send("$-1\r\n"),
            .receive(count),
            .send("$0\r\n\r\n")
        )
        let client = try Client(socket: server.path)
        #expect(try client.value(for: "k") == nil)
        #expect(try client.value(for: "k") == [])
    }

    @Test func `HELLO leaves with the first command that needs it, and once`() throws {
        let first = Self.hello + Self.set
        let server = try TranscriptServer(
            .receive(first.utf8.count),
            .send(Self.helloReply + Self.setReply),
            .receive(Self.set.utf8.count),
            .send(Self.setReply)
        )
        let client = try Client(socket: server.path)
        let commit = try client.set([0x76], for: "k")
        #expect(commit.revision == 5)
        #expect(commit.count == 1)
        #expect(commit.durability == "synced")
        try client.set([0x76], for: "k")
        #expect(server.finish() == first + Self.set)
    }

    @Test func `a name is given with HELLO`() throws {
        let hello = "*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$5\r\nmixer\r\n"
        let server = try TranscriptServer(
            .receive(hello.utf8.count + Self.set.utf8.count),
            .send(Self.helloReply + Self.setReply)
        )
        try Client(socket: server.path, name: "mixer").set([0x76], for: "k")
        #expect(server.finish() == hello + Self.set)
    }

    @Test func `a write whose reply is lost has an unknown outcome`() throws {
        let server = try TranscriptServer(.receive((Self.hello + Self.set).utf8.count))
        let client = try Client(socket: server.path)
        let error = #expect(throws: StateError.self) { try client.set([0x76], for: "k") }
        #expect(error?.code == .outcomeUnknown)
        // The client stays lost, and says that nothing was sent.
        let next = #expect(throws: StateError.self) { try client.set([0x76], for: "k") }
        #expect(next?.code == .unreachable)
    }

    @Test func `a read whose reply is lost is unreachable`() throws {
        let server = try TranscriptServer(.receive(Self.get.utf8.count), .send("$3\r\n0."))
        let client = try Client(socket: server.path)
        let error = #expect(throws: StateError.self) { try client.value(for: "k") }
        #expect(error?.code == .unreachable)
    }

    @Test func `a daemon that is silent costs no more than the timeout`() throws {
        let server = try TranscriptServer(.waitForEnd)
        let reader = try Client(socket: server.path, timeout: .milliseconds(20))
        let error = #expect(throws: StateError.self) { try reader.value(for: "k") }
        #expect(error?.code == .unreachable)
        let other = try TranscriptServer(.waitForEnd)
        let writer = try Client(socket: other.path, timeout: .milliseconds(20))
        let unknown = #expect(throws: StateError.self) { try writer.set([0x76], for: "k") }
        #expect(unknown?.code == .outcomeUnknown)
    }

    @Test func `a socket that is not there is unreachable and named`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "none")
        let error = #expect(throws: StateError.self) { try Client(socket: path) }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains(path) == true)
    }

    @Test func `a daemon that turns a client away is heard`() throws {
        let server = try TranscriptServer(.send("-LIMIT 10000 clients are connected\r\n"))
        let client = try Client(socket: server.path)
        _ = server.finish()
        let error = #expect(throws: StateError.self) { try client.set([0x76], for: "k") }
        #expect(error == StateError(.limit, "10000 clients are connected"))
    }

    @Test func `what is no RESP ends the connection`() throws {
        let server = try TranscriptServer(.receive(Self.get.utf8.count), .send("HTTP/1.1 400\r\n"))
        let client = try Client(socket: server.path)
        let error = #expect(throws: StateError.self) { try client.value(for: "k") }
        #expect(error?.code == .unreachable)
    }

    @Test func `a page too big for a reply is asked for in smaller pages`() throws {
        func list(_ arguments: String...) -> String {
            "*\(arguments.count)\r\n" + arguments.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
        }
        let whole = list("STATE.LIST", "/", "LIMIT", "1000")
        let part = list("STATE.LIST", "/", "LIMIT", "125")
        let row = "*3\r\n$1\r\nk\r\n$1\r\nv\r\n:4\r\n"
        let server = try TranscriptServer(
            .receive(whole.utf8.count),
            .send("-TOOBIG use LIMIT and AFTER\r\n"),
            .receive(part.utf8.count),
            .send("*1\r\n" + row)
        )
        var pages = try Client(socket: server.path).pages(of: .everything)
        let page = try pages.next()
        #expect(page?.map(\.key) == [[0x6B]])
        #expect(page?.map(\.value) == [[0x76]])
        #expect(page?.map(\.revision) == [4])
        #expect(try pages.next() == nil)
        #expect(server.finish() == whole + part)
    }
}

struct ClientWatchTests {
    static let request =
        ClientTests.hello + "*3\r\n$11\r\nSTATE.WATCH\r\n$2\r\na/\r\n$8\r\nSNAPSHOT\r\n"
    static let reply =
        ClientTests.helloReply
        + "%3\r\n$5\r\nwatch\r\n:1\r\n$8\r\nrevision\r\n:9\r\n$5\r\nepoch\r\n$4\r\n00ff\r\n"

    /// An event in one line.
    private func text(_ event: Client.Event) -> String {
        func text(_ bytes: [UInt8]?) -> String {
            bytes.map { String(decoding: $0, as: UTF8.self) } ?? "nil"
        }
        func list(_ changes: [Client.Change]) -> String {
            changes.map { change in
                let previous = change.previous.map { "(\(text($0)))" } ?? ""
                return "\(text(change.key))=\(text(change.value))\(previous)@\(change.revision)"
            }.joined(separator: " ")
        }
        return switch event {
        case .commit(let watch, let revision, let changes):
            "\(watch): commit \(revision) \(list(changes))"
        case .piece(let watch, let changes): "\(watch): piece \(list(changes))"
        case .synced(let watch, let revision): "\(watch): synced \(revision)"
        case .gap(let watch, let revision): "\(watch): gap \(revision)"
        case .progress(let watch, let revision): "\(watch): progress \(revision)"
        case .away(let watch, let revision): "\(watch): away \(revision)"
        case .current(let watch, let revision): "\(watch): current \(revision)"
        }
    }

    @Test func `events before, between and after replies are handed out in order`() throws {
        let first =
            ">4\r\n$12\r\nstate.change\r\n:1\r\n:0\r\n*1\r\n*3\r\n$1\r\na\r\n$1\r\nx\r\n:4\r\n"
        let synced = ">3\r\n$12\r\nstate.synced\r\n:1\r\n:9\r\n"
        let commit =
            ">4\r\n$12\r\nstate.change\r\n:1\r\n:10\r\n*2\r\n*3\r\n$1\r\na\r\n_\r\n$1\r\nx\r\n"
            + "*3\r\n$1\r\nb\r\n$1\r\ny\r\n_\r\n"
        let unknown = ">2\r\n$11\r\nstate.later\r\n:1\r\n"
        let rest =
            ">3\r\n$9\r\nstate.gap\r\n:1\r\n:11\r\n"
            + ">3\r\n$14\r\nstate.progress\r\n:1\r\n:12\r\n"
        let server = try TranscriptServer(
            .receive(Self.request.utf8.count),
            .send(Self.reply + first),
            .receive(ClientTests.get.utf8.count),
            .send(synced + "$1\r\nv\r\n" + commit + unknown + rest),
            .waitForEnd
        )
        let client = try Client(socket: server.path, timeout: .seconds(20))
        let watch = try client.watch([Pattern("a/")], snapshot: true)
        #expect(watch.number == 1)
        #expect(watch.revision == 9)
        #expect(watch.epoch == "00ff")
        #expect(try client.value(for: "k") == [0x76])
        let events = try (0..<5).map { _ in try client.nextEvent(timeout: .seconds(20)) }
        #expect(
            events.map { $0.map(text) } == [
                "1: piece a=x@4", "1: synced 9", "1: commit 10 a=nil(x)@10 b=y@10", "1: gap 11",
                "1: progress 12",
            ]
        )
        #expect(try client.nextEvent(timeout: .milliseconds(10)) == nil)
    }

    @Test func `a watch whose daemon dies says so`() throws {
        let server = try TranscriptServer(.receive(Self.request.utf8.count), .send(Self.reply))
        let client = try Client(socket: server.path, timeout: .seconds(20))
        _ = try client.watch([Pattern("a/")], snapshot: true)
        let error = #expect(throws: StateError.self) {
            try client.nextEvent(timeout: .seconds(20))
        }
        #expect(error?.code == .unreachable)
    }
}

struct PatternArgumentTests {
    @Test(arguments: ["snapshot", "AFTER", "DryRun"])
    func `a pattern that reads as an option is written with a backslash`(word: String) throws {
        let pattern = try Pattern(word)
        #expect(pattern.argument == Array(("\\" + word).utf8))
        // What the daemon makes of it is the same key.
        #expect(try Pattern("\\" + word).literal == Array(word.utf8))
    }

    @Test(arguments: ["a*b", "a[b", "a?", #"a\b"#, "plain", "p*/"])
    func `a literal pattern means its text and no glob`(text: String) throws {
        let pattern = try Pattern(literal: Array(text.utf8))
        #expect(pattern.kind == (text.hasSuffix("/") ? .prefix : .key))
        #expect(pattern.literal == Array(text.utf8))
    }
}
