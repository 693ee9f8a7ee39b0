import StateEngine
import StateServer
import Testing

/// When memory is looked at, without a clock.
struct MemoryScheduleTests {
    private static let mebibyte = 1 << 20

    private func bound(_ byteCount: Int, used: Int) -> MemoryBound {
        MemoryBound(name: "test", byteCount: byteCount, usedByteCount: used)
    }

    @Test(arguments: [110, 160, 4_096])
    func `never silent about storage: however fast values are set, memory is found short in time`(
        mebibytes: Int
    ) {
        let byteCount = mebibytes * MemoryScheduleTests.mebibyte
        let value = 64 << 10
        var schedule = MemorySchedule()
        var used = 0
        // No time passes.
        while used < byteCount {
            if schedule.isDue(at: 0, taken: Int64(used)) {
                let found = bound(byteCount, used: used)
                if found.isShort { break }
                schedule.plan(after: found, at: 0, taken: Int64(used))
            }
            used += value
        }
        let reserved = bound(byteCount, used: 0).reservedByteCount
        #expect(used > byteCount - reserved - value)
        #expect(used <= byteCount - reserved + reserved / 16)
    }

    @Test func `bounded: work beside the values may take a quarter of what a machine has to spare`()
    {
        let text = "MemTotal:        8388608 kB\nMemFree:  1 kB\nMemAvailable:    4194304 kB\n"
        #expect(MemoryBound(meminfo: text).spareByteCount() == ((4 << 30) - (1 << 30)) / 4)
        #expect(MemoryBound(meminfo: "").spareByteCount() == 0)
        #expect(MemoryBound(meminfo: text).spareByteCount(besides: 4 << 30) == 0)
    }

    @Test
    func `values that are set are no reason to look while none is taken, or nothing bounds them`() {
        var schedule = MemorySchedule()
        let full = 64 * MemoryScheduleTests.mebibyte
        for found in [bound(full, used: full), nil] {
            schedule.plan(after: found, at: 0, taken: 0)
            #expect(!schedule.isDue(at: 249, taken: 1 << 40))
            #expect(schedule.isDue(at: 1_000, taken: 0))
        }
    }

    @Test func `little room is looked at more often than much`() {
        var schedule = MemorySchedule()
        schedule.plan(after: bound(1 << 30, used: 0), at: 0, taken: 0)
        #expect(!schedule.isDue(at: 249, taken: 0) && schedule.isDue(at: 250, taken: 0))
        schedule.plan(after: bound(1 << 30, used: 800 << 20), at: 0, taken: 0)
        #expect(!schedule.isDue(at: 19, taken: 0) && schedule.isDue(at: 20, taken: 0))
    }
}
