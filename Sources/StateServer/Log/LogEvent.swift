/// What a log message is about: the kind by which the journal and its catalog know it.
///
/// A raw value is the MESSAGE_ID of the kind, which never changes, whatever the message says
/// (https://www.freedesktop.org/software/systemd/man/latest/systemd.journal-fields.html). What to do
/// about each is in a line `event NAME` of scripts/messages.tsv, from which scripts/messages makes
/// the catalog. The first sentence of a case is its subject there.
public enum LogEvent: String, CaseIterable, Sendable {
    /// The daemon serves.
    case started = "45a113deb3144ab0bef985e56c4bd3f3"
    /// The configuration of a start.
    case configured = "d3e5b574a4a241cb976bb84d18d814b8"
    /// The daemon could not start.
    case startFailed = "4093c40b4e19445eba8885dded79a152"
    /// The daemon stopped.
    case stopped = "71d7dd0c1dbc43fdaced333f8414a1b0"
    /// Loading the values takes most of the memory.
    case loadingShort = "e17f9ba4c74c4a3ea9546bf117b5f85c"
    /// An error in the configuration.
    case configurationError = "7da3662b534549b6b2bddfa5022042f7"
    /// Something in the configuration that was probably not meant.
    case configurationWarning = "6e02a42c4ea04f6d9338134518d31283"
    /// The configuration was reloaded.
    case reloaded = "187bbfff28f640b2aa442fd11e38656a"
    /// The configuration was not reloaded.
    case reloadFailed = "a2659ddb296346ff9e499cdced45a974"
    /// A limit is lower than configured.
    case limitReduced = "96c8cbae881c448c84926feeca3432c7"
    /// Keys moved to another storage.
    case keysMoved = "90a8400cdb9941acb9f017dd9b5189fd"
    /// Credentials became values.
    case credentialsSet = "196a1b13bc644bb9a3ac42623419b249"
    /// Credentials did not become values.
    case credentialsNotSet = "d7baafb560ff436287be3b1915811335"
    /// Values of early boot became values of the store.
    case earlySet = "d429b47920224ca3accd0459718a7f8d"
    /// Values of early boot are not in the store.
    case earlyNotSet = "42c5638e326d4bd08079bb3a892bb97c"
    /// Connections were handed over to the next process.
    case connectionsHandedOver = "5aa051cbe85841c8a5efe12a3aa9de5f"
    /// Connections of the last process go on.
    case connectionsContinued = "f6b048b3b5c944669d330e3503d41814"
    /// Connections of the last process are closed.
    case connectionsLost = "2ab33f1d4f6a4cf98dadbdd9700aa37f"
    /// Something about the store.
    case storeFinding = "6427ae5f290144e8848acc4232bc6d62"
    /// The store is damaged.
    case storeDamaged = "2c0ab844e66a450485e49475fbf9ffa6"
    /// The store is not damaged.
    case storeUndamaged = "c7b49f13be1f4d8bab38ea9acf4962e3"
    /// The store was reopened.
    case storeReopened = "b35262f9beb74f9b89a9cd907c6ca171"
    /// The store cannot be reopened.
    case storeNotReopened = "aba972f627f540d9af907fb502c41b16"
    /// Writes failed.
    case commitFailed = "9d1a019a421847958cc59500cb2773ec"
    /// Writes were undone that had a reply.
    case replyUndone = "b830277d2fce40ac91e5d73efe521a69"
    /// The disk is full.
    case diskFull = "aa3ee7fb17824d23a58736099c2b48ad"
    /// The disk has room again.
    case diskFree = "acff2761da4a4c66a6f653b94ecf0594"
    /// The copy of a cluster may be behind.
    case clusterAway = "6d2f0a9b5e0c4c6f8f5b0f2f0c3a7e41"
    /// The copy of a cluster is current again.
    case clusterCurrent = "b1c9a7d2e3f44a4d9c7d5b3e9a6f8c02"
    /// Keys were compared with a cluster.
    case clusterCompared = "0f4e8d7c6b5a49389a1c2d3e4f5a6b7c"
    /// It was found out what became of a write to a cluster.
    case clusterSettled = "5c1e8a4f7d3b49c2a6e0b9d8f1c27a35"
    /// The memory is short.
    case memoryShort = "3c52f66b308f4abb937c2b4b3a2ca799"
    /// There is memory again.
    case memoryFree = "e23fc3b329c6401489910bd454dc6f0f"
    /// Changes with durability interval are not stored.
    case deferralFailed = "974107239f8345f79f036e129a86104b"
    /// Changes with durability interval are stored again.
    case deferralRestored = "a35278ccec924e8aab93ad6bd62b9aaf"
    /// Changes with durability interval are lost.
    case deferralLost = "99ffe88e752e4084b8bff4c0eb696797"
    /// Settling the log into the database failed.
    case settlingFailed = "4df48c1fd6574bc8ac522d7adabe999f"
    /// Settling succeeds again.
    case settlingRestored = "750040e2ff1940769d22666c46fd1e0e"
    /// The reserved revision cannot be raised.
    case reservationFailed = "78a9eab6c331442d8e688c3820d5f0c6"
    /// The reserved revision can be raised again.
    case reservationRestored = "4f8425ef9c66460ca4ad10e7ad88b939"
    /// The list of key patterns in memory cannot be updated.
    case patternsNotUpdated = "3015b2aed12d4733acb6a2025a66dab1"
    /// The commit thread takes no commits.
    case commitThreadStalled = "7f528014d383417ab7e294095655cfc7"
    /// The history could not be read for a watch.
    case historyNotRead = "a35f662f4bce41c8b6e7e3606f81ce63"
    /// Something about keys that are files.
    case keyFile = "36907a9dd5ad4332b00a94b1ff33eaef"
    /// A rule refused access.
    case accessDenied = "84a68d87ca8b4ee199a6b3a5cda81255"
    /// A soft limit was exceeded.
    case softLimitExceeded = "31372eb6d5b94abbafef46ee14af8c89"
    /// A client was disconnected.
    case clientDisconnected = "ad51d7ee720e4e47b885472465af64a7"
    /// New clients are refused.
    case clientsRefused = "9bf9ad8dbea34296a68f0a6a0facb499"
    /// A key with audit was changed.
    case audit = "d8922414f2fc4b2e8d5a239794c56b9b"
    /// A key with audit was read.
    case auditRead = "f8df5576675d46ba9184a7d966bd77dc"
    /// Lines of the log were dropped.
    case linesDropped = "b165a5a4050940949cfa812ea5c915b7"
}
