// Importers of StateSecrets need the containers that it makes.
@_exported public import StateContainers
