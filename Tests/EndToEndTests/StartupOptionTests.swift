import StateTestSupport
import Testing

/// The command line of the daemon.
struct StartupOptionTests {
    @Test func `--help teaches by example`() throws {
        let program = try Program([builtProgram("stated"), "--help"])
        #expect(try program.end() == 0)
        #expect(program.output == manual)
        #expect(program.errors.isEmpty)
    }

    @Test func `--version is one line`() throws {
        let program = try Program([builtProgram("stated"), "--version"])
        #expect(try program.end() == 0)
        #expect(program.output == "stated 0.1.0\n")
    }

    @Test(arguments: [
        (["--sockets", "/tmp/s"], "unknown argument '--sockets'"),
        (["serve"], "unknown argument 'serve'"),
        (["--socket"], "--socket needs a value"),
        (["--socket="], "--socket needs a value"),
        (["--data"], "--data needs a value"),
        (["--memory=yes"], "--memory takes no value"),
        (["--socket-mode", "rw"], "not 'rw'"),
        (["--socket-mode", "0888"], "not '0888'"),
        (["--socket-mode", "01777"], "not '01777'"),
        (["--socket-mode", "0066"], "not '0066'"),
        (["--history-changes", "-1"], "--history-changes takes a number such as 1000, not '-1'"),
        (["--history-age", "7"], "--history-age takes a time such as 500ms, 30s"),
        (["--history-age=7y"], "not '7y'"),
        (["--history-bytes", "1GB"], "--history-bytes takes bytes such as 65536, 64KiB"),
        (["--history-bytes", "9999999TiB"], "at most 9223372036854775807, not '9999999TiB'"),
        (["--clients", "0"], "--clients takes at least 1, not '0'"),
        (["--watches", "many"], "--watches takes a number such as 1000, not 'many'"),
        (["--output-bytes", "1KiB"], "--output-bytes takes at least 65536, not '1KiB'"),
        (["--value-bytes", "64MiB"], "--value-bytes takes at most 67107840, not '64MiB'"),
    ])
    func `an argument that makes no sense is named`(arguments: [String], reason: String) throws {
        let program = try Program([builtProgram("stated")] + arguments)
        #expect(try program.end() == 2)
        #expect(program.errors.hasPrefix("stated: error: "))
        #expect(program.errors.contains(reason))
        #expect(program.errors.hasSuffix("; see stated --help\n"))
        #expect(program.output.isEmpty)
    }

    private let manual = """
        stated keeps values that outlive the programs that set them, and serves them on a Unix socket.

        Usage: stated [--socket PATH] [--data DIRECTORY] [--memory] [--socket-mode MODE] [LIMIT …]
               stated --config FILE [OPTION …]
               stated --check-config FILE
               stated --check [--data DIRECTORY]
               stated --salvage [--data DIRECTORY] --to NEWDIRECTORY

          stated
              Serve this user's values on this user's socket, until Ctrl-C or SIGTERM.

          stated --socket /tmp/try.sock --memory --data /tmp/try
              Try it out: the values are in memory only, and all are gone when it stops.

          stated --socket /srv/app/state.sock --socket-mode 0660 --data /srv/app/state
              One instance for one application; its group may connect too.

          stated --history-age 30d --history-bytes 4GiB --history-changes 10000000
              Keep more of the past than usual, for watches that resume late and for looking back.

          stated --config /etc/stated/stated.json5
              Serve as the file says; options beside it count more. A file that cannot be used is
              refused with the place in it: try it with --check-config before. SIGHUP and 'statectl
              reload' read it again, while clients are served.

          stated --check
              Check this user's values: structure, checksums, order, and the chain of each key's
              changes. Nothing is changed, and a daemon that serves them goes on.

          stated --salvage --data /srv/app/state --to /srv/app/salvaged
              Copy what is whole of a store that is refused into a new one, and print what is lost;
              then start with --data /srv/app/salvaged, or move the directories.

        Talk to it, from another terminal:

          statectl set audio/volume 0.7
          statectl watch audio/
          redis-cli -s /tmp/try.sock get audio/volume

        Options:
          --config FILE       What to do, in JSON5: socket, data, limits, history, and rules for
                              keys: what they may hold, where they live, who may do what. Without it,
                              and without --socket, --data and --memory: stated.json5, where it is there,
                              in $CONFIGURATION_DIRECTORY, else for root in /etc/stated, else in
                              $XDG_CONFIG_HOME/stated (~/.config).
          --check-config FILE Say whether the file can be used, and else where it cannot; 2, then.
          --socket PATH       Listen here. Without it: a socket that was inherited (LISTEN_FDS),
                              else $STATED_SOCKET, else $XDG_RUNTIME_DIR/stated/stated.sock, else
                              $XDG_STATE_HOME/stated/stated.sock (~/.local/state);
                              for root /run/stated/stated.sock. 107 bytes at most.
          --data DIRECTORY    Keep the values here. Without it: $STATE_DIRECTORY, else
                              $XDG_STATE_HOME/stated (~/.local/state); for root /var/lib/stated.
          --memory            Keep the values in memory only. The directory then holds a lock and 4 KiB
                              that say up to where revisions were told, so that none repeats.
          --socket-mode MODE  Permission bits of the socket, in octal; 0600 without it.
          --check             Print what is wrong with the store, 100 lines at most, and a summary;
                              5 where anything is. It takes no ownership.
          --salvage           Copy every row that matches its checksum, with its revision. Of a key
                              whose newest row is lost the newest whole row is what is served, or
                              none: the list says which rows are lost, and their keys as far as they
                              are known. Clients see another store (a new epoch, revisions 2^32
                              higher), for what was lost may have been told. Exits 0 where every row
                              was whole, 5 where one is lost.
          --to NEWDIRECTORY   Where --salvage puts the new store. It is always another directory and
                              never one with a store in it: the damaged one stays as it is, for
                              another try and as evidence.
          --help, --version   Print this, or the version.

        Limits:
          --history-changes N   Changes of the past to keep; 1000000 without it.
          --history-age T       How old they may get: 500ms, 30s, 5m, 12h, 7d, 2w, 1h30m; 7d without it.
          --history-bytes B     How many bytes they may take: 65536, 64KiB, 8MiB, 1GiB, 2TiB; 1GiB without
                                it. Of the three, the first to be reached counts; 0 keeps live values only.
          --clients N           Clients at once; 10000 without it, and as many as there are descriptors.
          --watches N           Watches of one client; 1000 without it.
          --output-bytes B      What may wait for one client, 64KiB at least; 8MiB without it.
          --value-bytes B       The largest value; 8MiB without it.

        Exit codes: 0 stopped by a signal, 2 the configuration makes no sense, 3 another process
        owns the socket or the data, 5 the storage cannot be used, or is not whole.

        """
}
