/// What `--help` and `--version` print: a table, in the words of people.
enum Help {
    /// The version of this program.
    static let version = "0.1.0"

    /// The text for a verb, or for the program.
    static func text(for verb: Verb?) -> String {
        guard let verb else { return program }
        return "usage: \(verb.usage)\n\n\(verb.details)\n\(common)"
    }

    private static let program = """
        usage: statectl [--socket PATH] [--json] VERB …

        Values with names that outlive the processes that set them.

          get KEY              print a value
          set KEY VALUE|-      set a value, or what standard input has
          delete KEY|PREFIX/…  delete a key, or all keys below a prefix
          edit KEY             change a value in an editor
          list [PATTERN]       print keys and values
          watch PATTERN…       print changes as they happen, or run a command for each
          wait KEY             wait until a key is there, or gone, or has a value
          handlers             list the named handlers of 'watch --name'
          import FILE|-        set what the lines of a file say
          export [PATTERN]     print JSON lines that import reads back
          history KEY          print what a key was, newest first
          blame KEY            print who changed a key, and when
          diff REV1 [REV2]     print what has changed from one revision to another
          revert PATTERN --to REV
                               bring keys back to what they were
          compact              take old changes out of the history
          status               print what the daemon says of itself
          watches              print each watch and how far it is
          check [PATTERN]      list the stored values that a rule refuses now, or check the store on disk
          explain KEY          print what the configuration says of a key, and which rule says it
          rules                print the rules of the configuration
          reload               have the daemon read its configuration again

        A PATTERN is a key, a prefix that ends in / (/ alone is everything), or a glob with *, ? or [.

        examples:
          statectl set audio/volume 0.7
          statectl get audio/volume
          statectl watch audio/ -- sh -c 'echo "$STATED_KEY is now $(cat)"'

        'statectl VERB --help' says more.

        exit codes: 0 done; 1 absent; 2 usage, or an illegal key or pattern; 3 no daemon, no answer in time, or no
        permission to connect; 4 refused (a condition, a rule, a limit); 5 storage; 6 outcome unknown: the connection
        was lost, or no answer came in time, after a write was sent.

        """ + common

    private static let common = """

        options of every verb:
          --socket PATH  the daemon's socket; else $STATED_SOCKET, else
                         $XDG_RUNTIME_DIR/stated/stated.sock, else $XDG_STATE_HOME/stated/stated.sock
                         (~/.local/state), else /run/stated/stated.sock, whichever exists first
          --reply-timeout T
                         how long the daemon may take to answer one command, such as 10s; 0 for as long as it
                         takes; else $STATED_REPLY_TIMEOUT, else 30s. It does not end what waits: watch, wait and
                         compact do so as long as it takes
          --json         print JSON, one object a line; a value that is not UTF-8 is "base64"
          --help         print this
          --version      print the version
          --             what follows is no option

        """

    static let get = """
        Prints the value and a newline. On a terminal control characters and \\ are escaped. An absent key
        prints nothing and exits 1. KEY is literal.

          --raw   the bytes of the value and nothing else
          --long  also revisions, time, owner, who wrote it, and how safe it is (--json has them too)
          --at REV
                  what it was at that revision; one that the daemon keeps no more exits 5

        examples:
          statectl get audio/volume
          statectl get audio/volume --long
          statectl get audio/volume --at 1
          if level=$(statectl get audio/volume); then echo "$level"; fi

        """

    static let set = """
        Sets the value; it is durable when this ends with 0. For - the value is what standard input has, without
        one final newline. KEY is literal. --json prints the revision.

          --if-absent      only where the key is absent
          --if-present     only where it is present
          --if-revision N  only where revision N changed it last; 0: where it is absent
          --if-value V     only where its value is V
          --durability LEVEL
                           what this waits for: memory, written or synced, which it is where none is given;
                           nobody else sees the value before it is on stable storage
          --raw            keep the final newline of standard input

        A condition that does not hold exits 4 and changes nothing.

        examples:
          statectl set audio/volume 0.7
          statectl set audio/volume 0.8 --if-value 0.7
          date | statectl set boot/time -

        """

    static let delete = """
        Deletes keys in one commit and prints how many. KEY and PREFIX/ are literal: no globs. test/ means what
        is below test/, and neither test nor test2.

          --dry-run  only count them
          --all      delete everything

        examples:
          statectl delete audio/volume
          statectl delete audio/ --dry-run
          statectl delete --all --dry-run

        """

    static let list = """
        Prints 'key = value' lines in key order, which import reads. Control characters, bytes that are not
        UTF-8 and \\ are escaped: \\n, \\t, \\xNN, \\\\; in a key also =. However long it is, it is the state of one
        moment (with a daemon that keeps nothing of what was, '--memory', of 1,000 keys each).

          --keys   only keys
          --long   revision TAB key TAB value TAB backing TAB type TAB owner; the type is that of the
                   schema, or what the value is in JSON
          --count  only how many
          --at REV what there was at that revision

        examples:
          statectl list
          statectl list audio/ --at 1
          statectl list 'audio/*' --keys
          statectl list / --count

        """

    static let `import` = """
        Sets what the lines say, in one commit for each 1,000 lines (or 16 MiB):

          key = value                        as sysctl -a and list print it; \\n, \\t, \\xNN and \\\\ are undone
          {"key":"k","value":"v"}            as export prints it; or "base64" for "value"

        Empty lines and lines that begin with # are passed over. The first = divides; a value may be empty or
        contain =. Of two lines with one key the last counts. A line that is neither exits 2 and is named by its
        number; of its batch nothing is kept.

          --prefix P/  put the keys below P/
          --dots       dots in keys become /

        examples:
          sysctl -a | statectl import --prefix kernel/ --dots -
          statectl export audio/ | statectl import --prefix backup/ -

        """

    static let export = """
        Prints one JSON object a line with "key" and "value", or "base64" where the value is not UTF-8. import
        reads back exactly what was exported: the state of one moment (with a daemon that keeps nothing of what
        was, '--memory', of 1,000 keys each).

        examples:
          statectl export > backup.jsonl
          statectl export audio/

        """

    static let status = """
        Prints what the daemon says of itself, a 'name: value' line each.

        examples:
          statectl status
          statectl status --json

        """

    static let watches = """
        Prints a line for each watch of the daemon: whose it is, its state, and how far it is. 'synced' was told all
        that is durable; 'catching up' is being told what was, a state, or latest values; 'blocked' waits for its
        client to read. LAG is in commits, WAITING in bytes. --json also has how many latest values wait.

        examples:
          statectl watches
          statectl watches --json

        """
}
