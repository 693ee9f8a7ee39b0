import Glibc
import StateTestSupport
import Testing

/// The wall clock of a daemon, which a test moves.
///
/// With `STATED_FAKETIME`, the path of its library, libfaketime moves it.
struct MovedClock {
    private let directory: TemporaryDirectory
    private var ahead: String { directory.path(of: "ahead") }

    /// The library that is loaded first.
    private let library: String
    static let tenYears = 10 * 365 * 86_400

    /// Compiles the library that the daemon loads first, if there is no other.
    init(in directory: TemporaryDirectory) throws {
        self.directory = directory
        if let path = getenv("STATED_FAKETIME") {
            library = String(cString: path)
            try move(by: 0)
            return
        }
        library = directory.path(of: "clock.so")
        let source = try directory.write(
            """
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <time.h>
            int clock_gettime(clockid_t clock, struct timespec *time) {
                int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
                int result = real(clock, time);
                FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("AHEAD"), "re") : NULL;
                long seconds = 0;
                if (file && fscanf(file, "%ld", &seconds) == 1) time->tv_sec += seconds;
                if (file) fclose(file);
                return result;
            }

            """,
            to: "clock.c"
        )
        let compiled = try runCommand("clang", ["-shared", "-fPIC", "-o", library, source])
        try #require(compiled.exitCode == 0, "\(compiled)")
    }

    /// What the daemon starts with.
    var environment: [String: String] {
        [
            "LD_PRELOAD": library, "AHEAD": ahead, "FAKETIME_TIMESTAMP_FILE": ahead,
            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        ]
    }

    /// From now on it is so many seconds ahead of the machine's.
    func move(by seconds: Int) throws {
        // Nobody may read half of it.
        try directory.write((seconds < 0 ? "" : "+") + "\(seconds)\n", to: "ahead.new")
        guard rename(directory.path(of: "ahead.new"), ahead) == 0 else {
            throw SystemFailure(call: "rename", errno)
        }
    }

    func moveAhead() throws { try move(by: MovedClock.tenYears) }

    func moveBack() throws { try move(by: 0) }
}
