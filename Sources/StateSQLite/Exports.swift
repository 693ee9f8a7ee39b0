// Importers of StateSQLite need `~>`, `withTransaction` and the types that its declarations use.
@_exported public import StateContainers
