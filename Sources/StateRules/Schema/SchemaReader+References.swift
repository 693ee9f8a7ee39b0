import StateEngine
import StateJSON

extension SchemaReader {
    /// The index in the table of what `$ref` names.
    func target(
        of text: String,
        at path: JSONPath,
        _ scope: Scope
    ) throws(OptionFault) -> Int {
        let reference = URIReference(text).resolved(against: scope.base)
        guard let fragment = URIReference.percentDecoded(reference.fragment ?? "") else {
            throw OptionFault(path, "\"\(text)\" is not a URI reference")
        }
        let origin = document(scope).file?.origin ?? path
        guard let resource = try place(of: reference.address, for: origin) else {
            throw OptionFault(path, missing(reference.address, as: text))
        }
        if fragment.isEmpty || fragment.hasPrefix("/") {
            let place = try place(fragment, in: resource, text, path)
            return target(place, base: base(of: place))
        }
        let address = "\(reference.address)#\(fragment)"
        guard let place = names?.places[address] ?? library.names.places[address] else {
            throw OptionFault(path, "no schema has \"$anchor\": \"\(fragment)\"")
        }
        return target(place, base: base(of: place))
    }

    private func missing(_ address: String, as text: String) -> String {
        guard address.hasPrefix(SchemaLibrary.root) else {
            return "no schema here has the address \(address), and none is fetched; put it into "
                + "schemas/NAME.json5 beside the configuration"
        }
        let name = address.dropFirst(SchemaLibrary.root.count)
        return name.hasPrefix("schemas/")
            ? "there is no file \(name) beside the configuration"
            : "\"\(text)\" names no schema; expected \"#…\" or \"schemas/NAME.json5\""
    }

    private func place(
        of address: String,
        for origin: JSONPath
    ) throws(OptionFault) -> SchemaLibrary.Place? {
        if names == nil {
            var found = SchemaLibrary.Names()
            try collect(root, into: &found)
            names = found
        }
        if let known = names?.places[address] ?? library.names.places[address] { return known }
        guard let document = try library.read(address, for: origin) else { return nil }
        let place = SchemaLibrary.Place(document: document, path: JSONPath())
        do throws(OptionFault) {
            try collect(place, into: &library.names)
        } catch { throw library.documents[document].located(error) }
        // All of it has to be right, also what nothing names.
        _ = target(place, base: address)
        return place
    }

    /// The place that a JSON pointer names.
    private func place(
        _ pointer: String,
        in resource: SchemaLibrary.Place,
        _ text: String,
        _ path: JSONPath
    ) throws(OptionFault) -> SchemaLibrary.Place {
        let document = library.documents[resource.document]
        var found = resource.path
        for part in pointer.utf8.split(separator: 0x2F, omittingEmptySubsequences: false)
            .dropFirst()
        {
            let name = unescaped(String(decoding: part, as: UTF8.self))
            if case .array? = document.value(at: found), let index = Int(name) {
                found = found.element(index)
            } else {
                found = found.member(name)
            }
        }
        guard document.value(at: found) != nil else {
            throw OptionFault(path, "\"\(text)\" names nothing")
        }
        return SchemaLibrary.Place(document: resource.document, path: found)
    }

    /// A part of a JSON pointer in which `~1` is `/` and `~0` is `~` (RFC 6901, section 4).
    private func unescaped(_ part: String) -> String {
        let pieces = part.split(separator: "~", omittingEmptySubsequences: false)
        return pieces.dropFirst().reduce(String(pieces[0])) { name, piece in
            switch piece.first {
            case "0": name + "~" + piece.dropFirst()
            case "1": name + "/" + piece.dropFirst()
            default: name + "~" + piece
            }
        }
    }

    /// The address that references at a place are relative to, before its own `$id`.
    private func base(of place: SchemaLibrary.Place) -> String {
        let document = library.documents[place.document]
        let bases = place.document == root.document ? names?.bases : library.names.bases
        var (path, base) = (document.root, document.address)
        for step in place.path.steps.dropFirst(document.root.steps.count) {
            let here = SchemaLibrary.Place(document: place.document, path: path)
            base = bases?[here] ?? base
            switch step {
            case .member(let name): path = path.member(name)
            case .element(let index): path = path.element(index)
            }
        }
        return base
    }

    /// Collects the addresses of a document and of the schemas in it.
    private func collect(
        _ place: SchemaLibrary.Place,
        into found: inout SchemaLibrary.Names
    ) throws(OptionFault) {
        let document = library.documents[place.document]
        found.places[document.address] = place
        try collect(document.value, place, document.address, &found)
    }

    private func collect(
        _ value: JSONValue,
        _ place: SchemaLibrary.Place,
        _ outer: String,
        _ found: inout SchemaLibrary.Names
    ) throws(OptionFault) {
        guard case .object(let members) = value else { return }
        var base = outer
        if case .string(let id)? = members["$id"] {
            base = URIReference(id).resolved(against: outer).address
            found.bases[place] = base
            try add(base, place, "$id", &found)
        }
        if case .string(let anchor)? = members["$anchor"] {
            try add("\(base)#\(anchor)", place, "$anchor", &found)
        }
        for (name, value) in members {
            let path = place.path.member(name)
            for (value, path) in SchemaReader.schemas(in: value, of: name, path) {
                let place = SchemaLibrary.Place(document: place.document, path: path)
                try collect(value, place, base, &found)
            }
        }
    }

    private func add(
        _ address: String,
        _ place: SchemaLibrary.Place,
        _ keyword: String,
        _ found: inout SchemaLibrary.Names
    ) throws(OptionFault) {
        if let known = found.places[address], known != place,
            known.document == place.document
        {
            throw OptionFault(place.path.member(keyword), "\(known.path) has the same")
        }
        found.places[address] = place
    }

    /// The schemas in the value of a keyword.
    private static func schemas(
        in value: JSONValue,
        of keyword: String,
        _ path: JSONPath
    ) -> [(JSONValue, JSONPath)] {
        switch (keyword, value) {
        case ("additionalProperties", _), ("contains", _), ("contentSchema", _), ("else", _),
            ("if", _), ("items", _), ("not", _), ("propertyNames", _), ("then", _),
            ("unevaluatedItems", _), ("unevaluatedProperties", _):
            [(value, path)]
        case ("allOf", .array(let elements)), ("anyOf", .array(let elements)),
            ("oneOf", .array(let elements)), ("prefixItems", .array(let elements)):
            elements.enumerated().map { ($1, path.element($0)) }
        case ("$defs", .object(let members)), ("definitions", .object(let members)),
            ("dependencies", .object(let members)), ("dependentSchemas", .object(let members)),
            ("patternProperties", .object(let members)), ("properties", .object(let members)):
            members.map { ($1, path.member($0)) }
        default: []
        }
    }
}
