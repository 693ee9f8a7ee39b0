/// What `--help` prints: a table, in the words of people.
enum Help {
    /// The text for a verb, or for the program.
    static func text(for verb: Verb?) -> String {
        guard let verb else { return program }
        return "usage: \(verb.usage)\n\n\(verb.details)\n\(common)"
    }

    private static let program = """
        usage: statectl VERB …           'statectl VERB --help' prints its options

        Values with names that outlive the processes that set them.

          a value       get  set  delete  exists  incr  edit  expire  ttl  persist
          several       list  tree  cp  mv  txn  apply  reset  convert  import  export
          changes       watch  wait  handlers  watches
          the past      history  blame  diff  revert  compact  backup
          processes     lock  locks  elect  service
          the daemon    status  health  top  metrics  ping  sync  check  check-config
                        reload  rules  explain  version  completion

        'statectl help verbs' prints a line about each. audio/ means all keys below
        it, / means everything. --json prints JSON. The exit code is 0 if all went well,
        1 if something is absent, 3 without a daemon, 4 if the daemon refuses.

        examples:
          statectl set audio/volume 0.7
          statectl get audio/volume
          statectl list audio/
          statectl watch audio/ -- sh -c 'echo "$STATED_KEY is now $(cat)"'

        """

    /// A line about each verb.
    static let verbs = """
          get KEY…             print a value, or several
          set KEY VALUE|-      set a value, or what standard input has; KEY=VALUE… for several
          incr KEY [N]         add to a number
          txn FILE|-           set, delete and check keys in one commit
          expire KEY TIME      make a key expire, such as in 30s
          ttl KEY              print how long a key has left
          persist KEY          make a key never expire
          delete KEY|PREFIX/…  delete a key, or all keys below a prefix
          exists KEY|PREFIX/…  check that keys are present
          cp KEY NEWKEY        copy a key, or all keys below a prefix
          mv KEY NEWKEY        rename a key, or all keys below a prefix
          edit KEY             change a value in an editor
          list [PATTERN]       print keys and values
          tree [PREFIX/]       print them as a tree
          watch PATTERN…       print changes as they happen, or run a command for each
          wait KEY             wait until a key is present, or absent, or has a value
          handlers             list the named handlers of 'watch --name'
          import FILE|-        set the keys and values in the lines of a file
          export [PATTERN]     print JSON lines that import reads back
          reset KEY|PREFIX/    delete what was set, so that defaults count again
          apply FILE|-         make keys what a JSON5 file says, and print what changes
          convert PATTERN -- COMMAND
                               replace values that a rule now refuses by what a command prints
          backup FILE|-        store everything at one revision in a file
          history KEY          print the values that a key had, newest first
          blame KEY            print who changed a key, and when
          diff REV1 [REV2]     print what changed between two revisions
          revert PATTERN --to REV
                               restore keys to their state at a revision
          lock NAME -- COMMAND run a command while it has a lock
          locks [NAME]         print who has locks, and who waits
          elect KEY -- COMMAND run a command while it is the leader
          service KEY VALUE -- COMMAND
                               set a key while a command runs
          compact              remove old changes from the history
          sync                 wait until everything set so far is on stable storage
          ping                 check that the daemon answers
          status               print the state of the daemon: sizes, counters, problems
          health               print whether the daemon serves and stores; the exit code says it
          top                  show rates, busy keys, writers and watches, live
          metrics              print the metrics of the daemon for Prometheus
          watches              print each watch and how far it is
          check [PATTERN]      list the stored values that a rule now refuses, or check the store
          explain KEY          print the options that apply to a key, and the rules that set them
          rules                print the rules of the configuration
          reload               make the daemon reload its configuration
          check-config         print what a reload would change, and the errors of the file
          completion SHELL     print what bash, zsh or fish reads to complete words
          version              print the version

        A PATTERN is a key, a prefix that ends in / (/ alone is everything), or a glob with *, ?
        or [. These names are understood, too: cat (get), put (set), rm and del (delete), ls (list),
        keys (list --keys), info (status).

        """

    private static let common = """

        options of every verb:
          --socket PATH  the daemon's socket; else $STATED_SOCKET, else the first that exists of
                         $XDG_RUNTIME_DIR/stated/stated.sock (else /run/user/UID/…),
                         $XDG_STATE_HOME/stated/stated.sock (~/.local/state) and
                         /run/stated/stated.sock; for root only the last. 'status' prints the choice
          --system       the daemon of the machine: /run/stated/stated.sock
          --user         the daemon of this user, whatever $STATED_SOCKET says
          --reply-timeout T
                         how long to wait for the answer to one command, such as 10s; 0 waits
                         forever; else $STATED_REPLY_TIMEOUT, else 30s. It does not limit how long
                         watch, wait and compact take
          --json         print JSON, one object a line; a value that is not UTF-8 is "base64"
          --help         print this
          --version      print the version
          --             what follows is not an option

        -h is --help, -V --version, -o json --json; where a verb has the option, -n is --dry-run,
        -l and -v are --long. --prefix or -r says that the names given are prefixes: one that does
        not end in / is refused. A number such as -5 is a value. Any other word that begins with a
        dash is refused, unless it follows --.

        exit codes:

        """ + ExitCode.table + "\n"

    static let get = """
        Prints the value and a newline. On a terminal, control characters and \\ are escaped. If the
        key is absent, prints nothing and exits 1. KEY is literal.

          --raw     print the bytes of the value and nothing else; not with --long or --json
          --long    also print revisions, time, owner, writer and durability (--json has them too)
          --fresh   wait until everything that the cluster of the key had is here; see 'sync --help'
          --at REV|TIME
                    the value at that revision, or at a time as 'diff --help' lists them; exits 5 if
                    the daemon no longer keeps it

        For several keys it prints 'key = value' lines as list does, of one moment, without those
        that are absent; then it exits 1. The options are for one key.

        examples:
          statectl get audio/volume
          statectl get audio/volume audio/mute || echo "one of them is absent"
          statectl get audio/volume --long
          statectl get audio/volume --at 1
          if level=$(statectl get audio/volume); then echo "$level"; fi

        """

    static let set = """
        Sets the value. When this ends with 0, the value is durable (but see --durability). If
        VALUE is -, the value is standard input without one final newline. KEY is literal. --json
        prints the revision.

          --if-absent      only if the key is absent
          --if-present     only if the key is present
          --if-revision N  only if revision N was its last change; 0: only if it is absent
          --if-value V     only if its value is V
          --ttl TIME       the value expires after TIME, such as 30s, 5m, 1h30m or 7d; without
                           it, as the rule of the key says
          --durability LEVEL
                           what to wait for: memory, interval or synced (the default, unless a
                           rule says otherwise). Others see the value only when it is on stable
                           storage, unless a rule has durability: "interval"; synced then stores
                           it at once, and everything before it
          --raw            keep the final newline of standard input
          --literal        KEY is literal even if it contains a =

        If the first operand contains a =, all operands are KEY=VALUE, and all are set in one
        commit. The first = ends the key; the value may contain more. Such values are literal, also
        -, and of the options only --ttl applies. In KEY VALUE, VALUE may contain a =.

        If a condition does not hold, it exits 4 and changes nothing.

        examples:
          statectl set audio/volume 0.7
          statectl set audio/volume 0.8 --if-value 0.7
          statectl set audio/volume=0.7 audio/mute=no
          statectl set session/7 open --ttl 30s
          date | statectl set boot/time -

        """

    static let delete = """
        Deletes keys in one commit and prints how many. KEY and PREFIX/ are literal, not globs.
        test/ means all keys below test/, but neither test nor test2.

          --dry-run  only count them
          --all      delete everything

        examples:
          statectl delete audio/volume
          statectl delete audio/ --dry-run
          statectl delete --all --dry-run

        """

    static let list = """
        Prints 'key = value' lines in key order; import reads them. Control characters, bytes that
        are not UTF-8 and \\ are escaped: \\n, \\t, \\xNN, \\\\; in a key also =. So is what import would
        refuse, because it means something else in other files: a quote that begins a value, a space
        at an end, the # of ' # '. The list shows the state at one moment, however long it is. (A
        daemon with --memory keeps no history: there, only each 1,000 keys are of one moment.)

          --keys    print only keys
          --long    print revision TAB key TAB value TAB backing TAB type TAB owner. The type is the
                    one in the schema, else the JSON type of the value
          --count   print only how many
          --at REV|TIME
                    the state at that revision, or at a time as 'diff --help' lists them
          --limit N at most so many lines
          --children
                    print only the next level below a prefix: keys, and prefixes that end in /
          --no-pager
                    do not use $PAGER. Without it, a list on a terminal goes through $PAGER if that
                    is set

        On a terminal, list and diff use colours, unless NO_COLOR is set.

        examples:
          statectl list
          statectl list audio/ --children
          statectl list audio/ --at 1
          statectl list 'audio/*' --keys
          statectl list / --count

        """

    static let status = """
        Prints the state of the daemon, a 'name: value' line each: sizes, counters and problems.
        Exits 5 if 'storage' or 'store' is not 'ok': writes are refused, or what is stored is
        damaged.

        examples:
          statectl status
          statectl status --json

        """

    static let watches = """
        Prints a line for each watch: its client, its state, and how far it is. A watch is 'synced'
        if it has received all that is durable, 'catching up' if it still receives history, a
        snapshot or latest values, and 'blocked' if its client does not read. LAG is in revisions,
        WAITING in bytes. --json also has how many latest values wait.

        examples:
          statectl watches
          statectl watches --json

        """
}
