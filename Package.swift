// swift-tools-version: 6.2
import PackageDescription

/// Swift 6 mode with the upcoming features that the code is written for; a warning fails the build.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// ThreadSanitizer is a shared library, so what it watches cannot be static: `STATED_SANITIZED=1 swift build --sanitize=thread …`.
let isSanitized = Context.environment["STATED_SANITIZED"] != nil

/// The programs carry the Swift runtime: they start in 2 ms and need no Swift on the machine.
///
/// (A flag of the command line would also reach the test bundle, which cannot be linked so.)
/// Without the table of their symbols, for libraries that nobody loads into them, they are 0.6 MB smaller.
let standalone: [LinkerSetting] =
    isSanitized
    ? [] : [.unsafeFlags(["-static-stdlib", "-Xlinker", "--no-export-dynamic"])]

/// `statectl` starts once for each line of a script, so it does without the dynamic loader.
///
/// `statectl get` as a whole process takes 1.0 ms where it took 2.6 (10th percentiles). With the system's
/// linker this warns of dlopen in the runtime.
let withoutLoader: [LinkerSetting] =
    isSanitized ? [] : [.unsafeFlags(["-static-executable", "-use-ld=lld"])]

/// For the server's loop and a cluster's link, which have one thread each.
///
/// Checks of overlapping access cost the loop 7 % of a GET (perf, pipelines of 16); no library product
/// contains either.
let unchecked: [SwiftSetting] = [.unsafeFlags(["-enforce-exclusivity=unchecked"])]

/// Optimising the tests takes longer than running them unoptimised (150 s of CPU time); what they test is
/// optimised.
let tests: [SwiftSetting] =
    strict + [
        .unsafeFlags(["-Onone", "-no-whole-module-optimization"], .when(configuration: .release))
    ]

let package = Package(
    name: "stated",
    // Of the library; the daemon and its tools are for Linux only. Synchronization needs it.
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "StateEngine", targets: ["StateEngine"]),
        .library(name: "StateContainers", targets: ["StateContainers"]),
        .library(name: "StateSQLite", targets: ["StateSQLite"]),
        .library(name: "StateStore", targets: ["StateStore"]),
        .library(name: "StateTesting", targets: ["StateTesting"]),
        .library(name: "StateDefaults", targets: ["StateDefaults"]),
        .library(name: "StateSecrets", targets: ["StateSecrets"]),
        .library(name: "StateClient", targets: ["StateClient"]),
        .executable(name: "stated", targets: ["stated"]),
        .executable(name: "statectl", targets: ["statectl"]),
        .executable(name: "stated-etcd", targets: ["stated-etcd"]),
        .executable(name: "statebench", targets: ["statebench"]),
    ],
    targets: [
        .target(name: "CLinux"),
        .systemLibrary(
            name: "CSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"])]
        ),
        .systemLibrary(
            name: "CCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]
        ),
        .systemLibrary(
            name: "CHTTP2",
            pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]
        ),
        .systemLibrary(
            name: "CTLS",
            pkgConfig: "libssl",
            providers: [.apt(["libssl-dev"])]
        ),
        .target(name: "StatePlatform", swiftSettings: strict),
        .target(
            name: "StateSystem",
            dependencies: ["StatePlatform", "CLinux"],
            swiftSettings: strict
        ),
        .target(
            name: "StateModel",
            dependencies: ["StateSystem", "StatePlatform", "CLinux"],
            swiftSettings: strict
        ),
        .target(name: "StateJSON", dependencies: ["StateModel"], swiftSettings: strict),
        .target(
            name: "StateEngine",
            dependencies: ["StateModel", "StateSystem", "StatePlatform", "CLinux"],
            swiftSettings: strict
        ),
        .target(
            name: "StateContainers",
            dependencies: ["StateEngine", "StateJSON", "StatePlatform", "CLinux"],
            swiftSettings: strict
        ),
        .target(
            name: "StateStore",
            dependencies: ["StateContainers", "StateEngine", "CLinux"],
            swiftSettings: strict
        ),
        .target(
            name: "StateTesting",
            dependencies: ["StateStore", "StateContainers", "StateEngine"],
            swiftSettings: strict
        ),
        .target(
            name: "StateDefaults",
            dependencies: ["StateContainers", "StateEngine"],
            swiftSettings: strict
        ),
        .target(
            name: "StateSecrets",
            dependencies: ["StateContainers", "StatePlatform", "CCrypto", "CLinux"],
            swiftSettings: strict
        ),
        .target(
            name: "StateLog",
            dependencies: ["StateEngine", "StateModel", "StateSystem", "StatePlatform", "CLinux"],
            swiftSettings: strict
        ),
        .target(
            name: "StateSQLite",
            dependencies: [
                "StateContainers", "StateEngine", "StateLog", "StatePlatform", "CLinux", "CSQLite",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "StateSalvage",
            dependencies: ["StateSQLite", "StateEngine", "StateLog", "CLinux", "CSQLite"],
            swiftSettings: strict
        ),
        .target(
            name: "StateWire",
            dependencies: ["StateModel", "StatePlatform"],
            swiftSettings: strict
        ),
        .target(
            name: "StateRules",
            dependencies: ["StateEngine", "StateJSON", "StateModel"],
            swiftSettings: strict
        ),
        .target(
            name: "StateServer",
            dependencies: ["StateEngine", "StateModel", "StateSystem", "StateWire", "CLinux"],
            swiftSettings: strict + unchecked
        ),
        .target(
            name: "StateClient",
            dependencies: [
                "StateContainers", "StateJSON", "StateModel", "StateSystem", "StatePlatform",
                "StateWire", "CLinux",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "StateEtcd",
            dependencies: ["StateModel", "StateSystem", "StateWire", "CHTTP2", "CTLS"],
            swiftSettings: strict + unchecked
        ),
        .executableTarget(
            name: "stated-etcd",
            dependencies: [
                "StateEtcd", "StateJSON", "StateModel", "StateSystem", "StateWire", "CLinux",
            ],
            swiftSettings: strict,
            linkerSettings: standalone
        ),
        .executableTarget(
            name: "stated",
            dependencies: [
                "StateServer", "StateSQLite", "StateSalvage", "StateRules", "StateJSON",
                "StateWire", "CLinux",
            ],
            swiftSettings: strict,
            linkerSettings: standalone
        ),
        .executableTarget(
            name: "statectl",
            dependencies: [
                "StateClient", "StateContainers", "StateJSON", "StateModel", "StateSystem",
                "CLinux",
            ],
            resources: [
                .embedInCode("Completion/Scripts/statectl.bash"),
                .embedInCode("Completion/Scripts/_statectl"),
                .embedInCode("Completion/Scripts/statectl.fish"),
            ],
            swiftSettings: strict,
            linkerSettings: withoutLoader
        ),
        .executableTarget(
            name: "statebench",
            dependencies: [
                "StateClient", "StateContainers", "StateSQLite", "StateEtcd", "StateEngine",
                "StateWire", "CLinux", "CSQLite",
            ],
            swiftSettings: strict,
            linkerSettings: standalone
        ),
        .executableTarget(
            name: "Examples",
            dependencies: [
                "StateStore", "StateTesting", "StateContainers", "StateSQLite", "StateClient",
                "StateEngine", "StateSecrets",
            ],
            swiftSettings: strict
        ),
        .target(name: "CFaultVFS", dependencies: ["CSQLite"], path: "Tests/CFaultVFS"),
        .target(name: "CTestUsers", path: "Tests/CTestUsers"),
        .executableTarget(
            name: "filewriter",
            dependencies: ["StateEngine"],
            path: "Tests/FileWriter",
            swiftSettings: tests
        ),
        .target(
            name: "StateTestSupport",
            dependencies: [
                "StateEngine", "StateLog", "StateWire", "StateServer", "StateClient", "CLinux",
                "CFaultVFS", "CTestUsers",
            ],
            path: "Tests/StateTestSupport",
            swiftSettings: tests
        ),
        .target(
            name: "StateLinearizability",
            path: "Tests/StateLinearizability",
            swiftSettings: strict
        ),
        .target(
            name: "StateGuarantees",
            dependencies: ["StateClient", "StateEngine", "StateWire", "StateTestSupport"],
            path: "Tests/StateGuarantees",
            swiftSettings: tests
        ),
        .executableTarget(
            name: "watchcrash",
            dependencies: ["StateGuarantees", "StateTestSupport"],
            path: "Tests/WatchCrash",
            swiftSettings: tests
        ),
        .executableTarget(
            name: "longchecks",
            dependencies: ["StateWire", "StateSystem", "StateTestSupport", "CSQLite"],
            path: "Tests/LongChecks",
            swiftSettings: strict
        ),
        .target(name: "CCrashRecorder", path: "Tests/CCrashRecorder"),
        .target(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        .target(
            name: "StateFuzzTargets",
            dependencies: [
                "StateRules", "StateServer", "StateSalvage", "StateSQLite", "StateContainers",
                "StateEngine", "StateLog", "StateModel", "StateJSON", "StateWire", "StateClient",
                "StateTestSupport", "CLinux", "CSQLite", "CFuzzer",
            ],
            path: "Tests/Fuzz/Targets",
            swiftSettings: tests
        ),
        .executableTarget(
            name: "fuzzreplay",
            dependencies: ["StateFuzzTargets", "StateEngine", "StateTestSupport"],
            path: "Tests/Fuzz/Replay",
            swiftSettings: tests
        ),
        .executableTarget(
            name: "schemacheck",
            dependencies: ["StateRules", "StateEngine", "StateJSON"],
            path: "Tests/SchemaCheck",
            exclude: ["failing.tsv"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "crashstates",
            dependencies: ["CCrashRecorder"],
            path: "Tests/CrashStates",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "simulate",
            dependencies: ["StateLinearizability", "StateTestSupport"],
            path: "Tests/Simulation",
            exclude: ["kernel.c"],
            swiftSettings: tests
        ),
        .executableTarget(
            name: "json5check",
            dependencies: ["StateJSON", "StateModel"],
            path: "Tests/JSON5Check",
            swiftSettings: tests
        ),
        .executableTarget(
            name: "StateTestProgram",
            dependencies: [
                "StateClient", "StateSQLite", "StateContainers", "StateEngine", "StateLog",
                "StateSystem", "CTestUsers",
            ],
            path: "Tests/StateTestProgram",
            swiftSettings: tests
        ),
        .testTarget(
            name: "LibraryTests",
            dependencies: [
                "StateClient", "StateServer", "StateSQLite", "StateContainers", "StateEngine",
                "StateTestSupport", "StateTestProgram",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateEngineTests",
            dependencies: ["StateEngine", "StateTestSupport", "filewriter"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateContainersTests",
            dependencies: ["StateContainers", "StateEngine", "CLinux", "StateTestSupport"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateLogTests",
            dependencies: ["StateLog", "StateEngine", "StateModel", "StateTestSupport"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateContractTests",
            dependencies: [
                "StateTesting", "StateContainers", "StateSQLite", "StateClient", "StateEngine",
                "StateLog", "StateModel", "StateSystem", "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateCodecTests",
            dependencies: ["StateJSON", "StateContainers", "StateEngine"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateRulesTests",
            dependencies: ["StateJSON", "StateRules", "StateContainers", "StateEngine"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateStoreTests",
            dependencies: [
                "StateStore", "StateTesting", "StateContainers", "StateEngine", "CLinux",
                "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .target(name: "StandInUI", path: "Tests/StandInUI", swiftSettings: tests),
        .testTarget(
            name: "MainActorTests",
            dependencies: [
                "StateStore", "StateTesting", "StateSQLite", "StateContainers", "StandInUI",
            ],
            swiftSettings: tests + [.defaultIsolation(MainActor.self)]
        ),
        .testTarget(
            name: "StateSecretsTests",
            dependencies: ["StateSecrets", "StateSQLite", "StateTestSupport"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateDefaultsTests",
            dependencies: ["StateDefaults", "StateEngine", "StateTestSupport"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "ExamplesTests",
            dependencies: ["Examples", "StateClient", "StateEngine", "StateTestSupport"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateSQLiteTests",
            dependencies: [
                "StateSalvage", "StateSQLite", "StateEngine", "StateLog", "StateClient", "CLinux",
                "CSQLite", "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateWireTests",
            dependencies: ["StateWire", "StateTestSupport"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateServerTests",
            dependencies: [
                "StateJSON",
                "StateServer", "StateSQLite", "StateLog", "StateRules", "StateContainers",
                "StateEngine",
                "StateWire", "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateClientTests",
            dependencies: [
                "StateJSON",
                "StateClient", "StateServer", "StateEngine", "StateWire", "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateFaultTests",
            dependencies: [
                "StateServer", "StateSQLite", "StateEngine", "StateWire", "CSQLite",
                "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateConsistencyTests",
            dependencies: [
                "StateEngine", "StateWire", "StateLinearizability", "StateTestSupport",
            ],
            swiftSettings: tests
        ),
        .testTarget(
            name: "StateGuaranteesTests",
            dependencies: ["StateGuarantees"],
            swiftSettings: tests
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "StateRules", "StateServer", "StateClient", "StateEngine", "StateWire",
                "StateTestSupport", "CLinux", "fuzzreplay", "longchecks", "StateTestProgram",
            ],
            swiftSettings: tests
        ),
    ]
)

// The archive of libFuzzer, for which `scripts/fuzz` builds everything with coverage; no other build has it.
if let fuzzer = Context.environment["STATED_FUZZER"] {
    for target in package.targets where target.type != .system {
        target.swiftSettings =
            (target.swiftSettings ?? []) + [
                .unsafeFlags(["-O", "-sanitize=fuzzer"])
            ]
    }
    package.targets += [
        .executableTarget(
            name: "statefuzz",
            dependencies: ["StateFuzzTargets", "StateEngine", "CFuzzer"],
            path: "Tests/Fuzz/Program",
            swiftSettings: strict + [.unsafeFlags(["-O", "-sanitize=fuzzer"])],
            linkerSettings: [.unsafeFlags([fuzzer, "-lstdc++"])]
        )
    ]
}
