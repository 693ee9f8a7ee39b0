// Importers of StateDefaults need the types that its declarations use.
@_exported public import StateContainers
