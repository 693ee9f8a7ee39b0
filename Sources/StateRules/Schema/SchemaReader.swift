import StateEngine
package import StateJSON

extension Schema {
    /// Reads a schema of a configuration.
    ///
    /// - Parameters:
    ///   - value: The schema.
    ///   - path: Its place in the configuration.
    ///   - library: What the rules of the configuration share.
    ///   - checksFormats: Whether `format` refuses values; the draft lets it be a remark only.
    /// - Throws: ``OptionFault``, for an unknown keyword, a keyword with a wrong value, or a
    ///   reference to nothing or only to itself.
    /// - Complexity: O(*n*) in the schema and the files that it names and no other rule before it.
    package init(
        _ value: JSONValue,
        at path: JSONPath,
        in library: SchemaLibrary = SchemaLibrary(),
        checksFormats: Bool = true
    ) throws(OptionFault) {
        let reader = SchemaReader(value, at: path, in: library, checksFormats: checksFormats)
        root = try reader.read()
        table = library.table
        let reading = SchemaReading(root, table)
        possibleTypes = reading.types
        namesTypes = reading.isNamed
        warnings = reader.warnings
    }
}

/// Reads the schema of one rule, with everything that its references name.
final class SchemaReader {
    /// Where a schema stands.
    struct Scope {
        var document: Int
        /// The address that references are relative to.
        var base: String
        var depth = 0
        /// Whether nothing around it says more about the same value.
        var isWhole = true
        /// Whether something around it may say more about parts of the value.
        private var isCombined = false

        init(document: Int, base: String) { (self.document, self.base) = (document, base) }

        /// Of a schema for the same value.
        var inPlace: Scope {
            var scope = self
            scope.depth += 1
            (scope.isWhole, scope.isCombined) = (false, true)
            return scope
        }

        /// Of a schema for a part of the value.
        var inside: Scope {
            var scope = self
            scope.depth += 1
            scope.isWhole = !isCombined
            return scope
        }
    }

    /// How deep schemas may be nested.
    static let depthLimit = 64

    let library: SchemaLibrary
    let checksFormats: Bool
    let root: SchemaLibrary.Place
    /// The addresses of the rule; nil until a reference needs them.
    var names: SchemaLibrary.Names?
    private var targets: [SchemaLibrary.Place: Int] = [:]
    /// What is in the table and not read yet.
    private var pending: [(place: SchemaLibrary.Place, base: String)] = []
    private(set) var finished: [(place: SchemaLibrary.Place, index: Int)] = []
    private(set) var warnings: [OptionFault] = []

    init(
        _ value: JSONValue,
        at path: JSONPath,
        in library: SchemaLibrary,
        checksFormats: Bool
    ) {
        self.library = library
        self.checksFormats = checksFormats
        let address = "\(SchemaLibrary.root)\(library.documents.count)"
        let document = SchemaLibrary.Document(
            value: value,
            root: path,
            address: address,
            file: nil
        )
        root = SchemaLibrary.Place(document: library.add(document), path: path)
    }

    func document(_ scope: Scope) -> SchemaLibrary.Document {
        library.documents[scope.document]
    }

    /// The schema, after everything that it refers to.
    ///
    /// - Throws: The faults of all of it, each once.
    func read() throws(OptionFault) -> SchemaNode {
        let document = library.documents[root.document]
        let scope = Scope(document: root.document, base: document.address)
        var faults: [OptionFault] = []
        var whole = SchemaNode.never
        do throws(OptionFault) {
            whole = try node(document.value, at: root.path, scope)
        } catch { faults += error.all }
        while faults.count < OptionReader.faultLimit, let next = pending.popLast() {
            do throws(OptionFault) { try read(next.place, next.base) } catch {
                // A schema that a reference names may be read twice.
                faults += error.all.filter { !faults.contains($0) }
            }
        }
        if faults.isEmpty, !finished.isEmpty {
            do throws(OptionFault) { try checkProgress(whole) } catch { faults = error.all }
        }
        guard let fault = OptionFault(faults) else { return whole }
        // What was not read may be needed by another rule.
        for (place, _) in finished { library.targets[place] = nil }
        for (place, _) in pending { library.targets[place] = nil }
        throw fault
    }

    private func read(_ place: SchemaLibrary.Place, _ base: String) throws(OptionFault) {
        guard let index = target(place) else { return }
        finished.append((place, index))
        let document = library.documents[place.document]
        var scope = Scope(document: place.document, base: base)
        scope.isWhole = false
        let value = document.value(at: place.path) ?? .null
        do throws(OptionFault) {
            library.table.set(index, to: try node(value, at: place.path, scope))
        } catch { throw document.located(error) }
    }

    /// Remembers what is probably a mistake.
    func warn(_ path: JSONPath, _ message: String, _ scope: Scope) {
        let fault = document(scope).located(OptionFault(path, message))
        // A schema that a reference names may be read twice.
        if warnings.count < 100, !warnings.contains(fault) { warnings.append(fault) }
    }

    // MARK: The table

    private func target(_ place: SchemaLibrary.Place) -> Int? {
        targets[place] ?? library.targets[place]
    }

    /// The index in the table of the schema at a place of the document.
    func target(_ path: JSONPath, _ scope: Scope) -> Int {
        target(SchemaLibrary.Place(document: scope.document, path: path), base: scope.base)
    }

    func target(_ place: SchemaLibrary.Place, base: String) -> Int {
        if let known = target(place) { return known }
        let index = library.table.reserve()
        if place.document == root.document {
            targets[place] = index
        } else {
            library.targets[place] = index
        }
        pending.append((place, base))
        return index
    }
}
