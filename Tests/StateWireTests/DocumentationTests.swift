import StateWire
import Testing

struct VerbDocumentationTests {
    @Test func `every verb is documented, once`() {
        let documented = VerbDocumentation.all.map(\.verb)
        #expect(Set(documented) == Set(Verb.Name.allCases))
        #expect(documented.count == Verb.Name.allCases.count)
    }

    @Test func `what is refused is no verb, and is named once`() {
        let refused = RefusedCommands.all.flatMap(\.names)
        #expect(Set(refused).count == refused.count)
        let verbs = Set(Verb.Name.allCases.map { $0.rawValue.uppercased() })
        #expect(verbs.isDisjoint(with: refused))
        #expect(RefusedCommands.reason(for: "lpush") != nil)
        #expect(RefusedCommands.reason(for: "get") == nil)
    }

    @Test func `every syntax is read: no bracket is left, and each repetition repeats something`() {
        for documentation in VerbDocumentation.all {
            let depth = "\(documentation.syntax)".reduce(0) {
                "[<".contains($1) ? $0 + 1 : "]>".contains($1) ? $0 - 1 : $0
            }
            #expect(depth == 0, "\(documentation.verb)")
            let read = CommandSyntax.read(documentation.syntax)
            #expect(read.isEmpty == (documentation.syntax.utf8CodeUnitCount == 0))
        }
    }

    private func shown(_ syntax: [CommandSyntax]) -> String {
        syntax.map { item in
            let inner =
                switch item.form {
                case .token: ""
                case .argument(let type): ":\(type)"
                case .choice(let choices):
                    "(" + choices.map { shown([$0]) }.joined(separator: "|") + ")"
                case .block(let items): "{" + shown(items) + "}"
                }
            let flags = (item.isOptional ? "?" : "") + (item.isRepeated ? "*" : "")
            return (item.token.map { $0 + "=" } ?? "") + item.name + inner + flags
        }
        .joined(separator: " ")
    }

    @Test func `optional, repeated and alternative arguments are told apart`() {
        #expect(shown(CommandSyntax.read("key [key ...]")) == "key:key*")
        #expect(
            shown(CommandSyntax.read("key value [key value ...]"))
                == "key{key:key value:string}*"
        )
        #expect(
            shown(CommandSyntax.read("key [NX | XX] [EX seconds | PX milliseconds]"))
                == "key:key nx(NX=nx|XX=xx)? seconds(EX=seconds:integer|PX=milliseconds:integer)?"
        )
        #expect(
            shown(CommandSyntax.read("[PREFIX prefix [PREFIX prefix ...]]"))
                == "PREFIX=prefix:string?*"
        )
        #expect(
            shown(CommandSyntax.read("<LIST | DURABILITY <memory | synced>>"))
                == "list(LIST=list|DURABILITY=durability(memory:string|synced:string))"
        )
    }

    @Test func `a script is known however it is written, and no other is`() {
        let texts = [
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
                + "else return 0 end",
            """
            -- Release.
            IF redis.call("GET",KEYS[1]) == ARGV[1]
            then
                return redis.call("DEL", KEYS[1]);
            else return 0 end
            """,
        ]
        for text in texts {
            let known = Array(text.utf8).withUnsafeBytes { KnownScript(text: $0) }
            #expect(known == .release, "\(text)")
        }
        for text in [
            "", "return 1", texts[0] + " ", texts[0].replacing("0", with: "1"),
            texts[0] + String(repeating: " ", count: 8_192),
        ] where text != texts[0] + " " {
            #expect(Array(text.utf8).withUnsafeBytes { KnownScript(text: $0) } == nil, "\(text)")
        }
        let released = SHA1("c3f8721cbb97f72bc19e972846bd7aaf91901658")
        #expect(released.flatMap { KnownScript($0) } == .release)
        #expect(Set(KnownScript.rows.map(\.script)) == Set(KnownScript.allCases))
    }
}
