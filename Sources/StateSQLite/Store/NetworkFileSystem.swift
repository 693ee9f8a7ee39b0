#if !canImport(Darwin)

import CLinux
import StatePlatform
import StateSystem

/// File systems whose files are on another machine.
///
/// SQLite's log needs memory shared by all its users, and reliable locks.
/// https://www.sqlite.org/wal.html#noshm
enum NetworkFileSystem {
    /// Magic numbers of statfs(2), and names.
    private static let magicNumbers: [Int64: String] = [
        0x6969: "nfs", 0x517B: "smb", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb3", 0x00C3_6400: "ceph",
        0x5346_414F: "afs", 0x6B41_4653: "afs", 0x0102_1997: "9p", 0x7375_7245: "coda",
        0x564C: "ncp", 0x0BD0_0BD0: "lustre", 0x4750_4653: "gpfs", 0xAAD7_AAEA: "panfs",
        0x7461_636F: "ocfs2", 0x0116_1970: "gfs2", 0x1983_0326: "beegfs", 0x2003_0528: "orangefs",
    ]
    private static let fuse: Int64 = 0x6573_5546
    private static let remoteFuse: Set<Substring> = [
        "fuse.sshfs", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.ceph", "fuse.s3fs", "fuse.rclone",
        "fuse.davfs", "fuse.davfs2", "fuse.juicefs", "fuse.gcsfuse", "fuse.goofys",
        "fuse.curlftpfs",
        "fuse.smbnetfs", "fuse.moosefs", "fuse.mfs", "fuse.cvmfs", "fuse.hdfs", "fuse.mount-s3",
    ]

    /// The name of the network file system that `place` is on; nil on a local one.
    static func name(of place: Int32, device: dev_t) -> String? {
        let type = clinux_file_system_type(place)
        if let name = magicNumbers[type] { return name }
        guard type == fuse else { return nil }
        let name = mountType(of: device)
        return remoteFuse.contains(name) ? String(name) : nil
    }

    /// The type that /proc/self/mountinfo gives for a device:
    /// `36 35 98:0 / /mnt rw,noatime master:1 - fuse.sshfs host:/dir rw`.
    private static func mountType(of device: dev_t) -> Substring {
        // The kernel's packing, which glibc's macros decode: 12 bits of major between 8 and 24 of
        // minor.
        let major = device >> 8 & 0xFFF | device >> 32 & 0xFFFF_F000
        let minor = device & 0xFF | device >> 12 & 0xFFFF_FF00
        let number = "\(major):\(minor)"
        for line in FileLocks.text(of: "/proc/self/mountinfo").split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 3, fields[2] == number,
                let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count
            else { continue }
            return fields[dash + 1]
        }
        return ""
    }
}

#else

import CLinux
import StatePlatform
import StateSystem

/// File systems whose files are on another machine.
enum NetworkFileSystem {
    /// What to call the network file system that `place` is on; nil on a local one (MNT_LOCAL).
    static func name(of place: Int32, device: dev_t) -> String? {
        clinux_file_system_type(place) == 0 ? nil : "not of this machine"
    }
}

#endif
