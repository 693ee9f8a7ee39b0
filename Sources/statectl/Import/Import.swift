import StateClient
import StateModel

extension Statectl {
    /// `import FILE|-`: one commit for each 1,000 lines.
    static func importEntries(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let prefix = invocation.value("--prefix") ?? []
        guard prefix.isEmpty || prefix.last == UInt8(ascii: "/") else {
            let text = String(decoding: prefix, as: UTF8.self)
            throw .usage("--prefix must end in '/': '\(text)/'")
        }
        let format = try documentFormat(invocation)
        var input = try Input(path: invocation.operands[0])
        var importer = Importer(
            client: try invocation.connect(),
            prefix: prefix,
            hasDots: invocation.has("--dots")
        )
        if let format {
            let text = try input.readText(limit: ImportDocument.byteLimit)
            try importer.take(ImportDocument(text, format))
        } else {
            while let line = try input.nextLine() { try importer.take(line) }
        }
        try importer.finish()
        let (count, commitCount) = (importer.entryCount, importer.commitCount)
        guard !invocation.isJSON else {
            return output.write(json: [
                "revision": .number(importer.revision), "count": .number(Int64(count)),
                "commits": .number(Int64(commitCount)),
            ])
        }
        let revision = commitCount > 0 ? "; revision \(importer.revision)" : ""
        let noun = count == 1 ? "entry" : "entries"
        let unit = commitCount == 1 ? "commit" : "commits"
        output.write("\(count) \(noun) in \(commitCount) \(unit)\(revision)\n")
    }

    /// The format that the options or the name of the file say; nil for lines.
    private static func documentFormat(
        _ invocation: Invocation
    ) throws(Failure) -> ImportDocument.Format? {
        guard let word = invocation.text("--format") else {
            let name = invocation.operands[0].split(separator: UInt8(ascii: "/")).last ?? []
            return ImportDocument.Format(fileName: Array(name))
        }
        guard word != "lines" else { return nil }
        guard let format = ImportDocument.Format(rawValue: word) else {
            let advice = word == "json" ? "; 'statectl apply' reads a document of JSON" : ""
            throw .usage("--format takes lines, env, ini or properties, not '\(word)'\(advice)")
        }
        return format
    }
}
