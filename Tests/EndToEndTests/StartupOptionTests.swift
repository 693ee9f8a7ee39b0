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
        (["--output-bytes", "1KiB"], "--output-bytes takes at least 64KiB, not '1KiB'"),
        (["--value-bytes", "64MiB"], "--value-bytes takes at most 65535KiB, not '64MiB'"),
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
               stated --check-config FILE|- [--as USER] [--all-warnings-are-errors]
               stated --check [--data DIRECTORY]
               stated --salvage [--data DIRECTORY] --to NEWDIRECTORY
               stated --restore FILE [--restore FILE …] --data NEWDIRECTORY

          stated
              Serve this user's values on this user's socket, until Ctrl-C or SIGTERM.

          stated --socket /tmp/try.sock --memory --data /tmp/try
              Try it out: all values are in memory only, and gone when it stops.

          stated --socket /srv/app/state.sock --socket-mode 0660 --data /srv/app/state
              One instance for one application. Members of its group may connect too.

          stated --history-age 30d --history-bytes 4GiB --history-changes 10000000
              Keep more history than the default, for watches that resume late and for looking back.

          stated --config /etc/stated/stated.json5
              Serve with this configuration. Command line options override it. If the file has an
              error, the daemon does not start, and names the place; --check-config checks the file
              without starting. SIGHUP and 'statectl reload' reload it while clients are served.

          stated --check
              Check this user's store: structure, checksums, order, and the chain of each key's
              changes. It changes nothing, and the daemon may run meanwhile.

          stated --salvage --data /srv/app/state --to /srv/app/salvaged
              Copy the intact rows of a damaged store into a new one, and print what is lost. Then
              start with --data /srv/app/salvaged, or move the directories.

          stated --restore monday.backup --restore tuesday.backup --data /srv/app/restored
              Make a store from a backup of 'statectl backup', and from one of the changes since.

        Use it from another terminal:

          statectl set audio/volume 0.7
          statectl watch audio/
          redis-cli -s /tmp/try.sock get audio/volume

        Options:
          --config FILE       The configuration, in JSON5: socket, data, limits, history, and rules
                              that say what keys may hold, where they are stored and who may use them.
                              Default, if --socket, --data and --memory are not given either:
                              stated.json5, if it exists, in $CONFIGURATION_DIRECTORY, else for root in
                              /etc/stated, else in $XDG_CONFIG_HOME/stated (~/.config).
          --check-config FILE Check the configuration; - is standard input. Print all errors and
                              warnings with their lines, at most 20 of each; exit 2 if there are errors.
                              Users and groups that this machine does not have are warnings.
          --as USER           With --check-config: check the directories of the rules with the rights of
                              USER. Default for root: the user of the unit stated.service.
          --all-warnings-are-errors
                              With --check-config: exit 2 if there are warnings.
          --config-schema     Print a JSON Schema of the configuration, for editors.
          --socket PATH       Listen here; at most 107 bytes. Default: an inherited socket
                              (LISTEN_FDS), else $STATED_SOCKET, else
                              $XDG_RUNTIME_DIR/stated/stated.sock (else /run/user/UID/…), else
                              $XDG_STATE_HOME/stated/stated.sock (~/.local/state); for root
                              /run/stated/stated.sock.
          --data DIRECTORY    Keep the values here. Default: $STATE_DIRECTORY, else
                              $XDG_STATE_HOME/stated (~/.local/state); for root /var/lib/stated.
          --adopt DIRECTORY   At the start, set the values of a daemon that served before the data
                              directory was there, and remove them from DIRECTORY: see
                              stated-early.service in docs/operations.md.
          --memory            Keep the values in memory only. The directory then holds only a lock and
                              the reserved revision (4 KiB), so that no revision is used twice.
          --socket-mode MODE  Permission bits of the socket, in octal. Default: 0600.
          --check             Print at most 100 problems of the store and a summary; exit 5 if there is
                              a problem. It does not lock the store.
          --salvage           Copy every row that matches its checksum, with its revision. If the newest
                              row of a key is lost, the newest intact row becomes its value, if there is
                              one. The list names the lost rows, and their keys if known. Clients see
                              another store (a new epoch, revisions 2^32 higher), because lost changes
                              may have been acknowledged. Exits 0 if every row was intact, 5 if not.
          --to NEWDIRECTORY   The directory for the new store of --salvage. It must not contain a store.
                              The damaged store is never changed.
          --restore FILE      Make a new store from a backup; - is standard input. Further ones, of
                              'statectl backup --since', follow in order. Each piece is checked before
                              it is written. Clients see another store, as with --salvage. Exits 5,
                              and leaves nothing, if a piece is damaged, the disk is full or the
                              directory exists.
          --help, --version   Print this, or the version.

        Limits:
          --history-changes N   Changes to keep in the history. Default: 1000000.
          --history-age T       Their greatest age: 500ms, 30s, 5m, 12h, 7d, 2w, 1h30m. Default: 7d.
          --history-bytes B     Their greatest size: 65536, 64KiB, 8MiB, 1GiB, 2TiB. Default: 1GiB.
                                Of the three limits, the first to be reached applies. 0 keeps no
                                history.
          --clients N           Clients at once. Default: 10000, or fewer if the limit of open files is
                                lower.
          --watches N           Watches of one client. Default: 1000.
          --output-bytes B      Bytes that may wait for one client, at least 64KiB. Default: 8MiB.
          --value-bytes B       The largest value. Default: 8MiB.

        Exit codes: 0 stopped by a signal; 2 wrong configuration or command line; 3 another process
        uses the socket or the data; 5 the storage cannot be used or is damaged.

        """
}
