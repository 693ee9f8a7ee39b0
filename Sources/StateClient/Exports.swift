// Importers of StateClient need `~>`, `withTransaction` and the types that its declarations use.
@_exported public import StateContainers
