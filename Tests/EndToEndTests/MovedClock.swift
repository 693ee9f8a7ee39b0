import Glibc
import StateTestSupport
import Testing

/// The wall clock of a daemon, which a test moves ten years ahead and back.
struct MovedClock {
    private let directory: TemporaryDirectory
    private var ahead: String { directory.path(of: "ahead") }

    /// Compiles the library that the daemon loads first.
    init(in directory: TemporaryDirectory) throws {
        self.directory = directory
        let source = try directory.write(
            """
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <stdlib.h>
            #include <time.h>
            #include <unistd.h>
            int clock_gettime(clockid_t clock, struct timespec *time) {
                int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
                int result = real(clock, time);
                if (clock == CLOCK_REALTIME && access(getenv("AHEAD"), F_OK) == 0)
                    time->tv_sec += 10L * 365 * 86400;
                return result;
            }

            """,
            to: "clock.c"
        )
        let library = directory.path(of: "clock.so")
        let compiled = try runCommand("clang", ["-shared", "-fPIC", "-o", library, source])
        try #require(compiled.exitCode == 0, "\(compiled)")
    }

    /// What the daemon starts with.
    var environment: [String: String] {
        ["LD_PRELOAD": directory.path(of: "clock.so"), "AHEAD": ahead]
    }

    func moveAhead() throws { try directory.write("", to: "ahead") }

    func moveBack() { unlink(ahead) }
}
