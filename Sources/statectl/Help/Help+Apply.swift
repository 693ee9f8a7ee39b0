/// The help of the verbs that make many keys what was asked for.
extension Help {
    static let apply = """
        Makes keys what a JSON5 or JSON file says, in one commit, and prints what changed. If FILE is
        -, it is standard input.

          {
            "system/hostname": "box",          // a key and its value
            "audio/": {                        // a prefix: a name that ends in /
              volume: 0.7,                     // the key audio/volume
              device: { name: "hw:0" },        // a value in JSON: {"name":"hw:0"}
              "eq/": { bass: 2 },              // the key audio/eq/bass
              muted: null,                     // audio/muted is to be absent
            },
          }

        A name that ends in / is a prefix of the names in its object. Any other name is a key, whatever
        its value is. The value of a string is its text; that of anything else is its JSON, with
        sorted names and without spaces. null deletes the key. Names are literal.

        It prints a line for each key that changes, in key order, escaped as by list:

          + key = value             the key was absent
          ~ key = value TAB was V   it had another value
          - key = value             it is deleted

        and at the end how many there are, or 'nothing changed': then there was no commit. --json
        prints "op", "key", "value" and "previous", and at the end "count" and "revision". If a rule
        refuses a change, nothing changes, and it exits 4. If somebody else changes a key of the file
        meanwhile, it compares again: at the revision of the commit, all keys are as the file says.

        A value that expires or ends with a process is different, unless a rule says so: it is set
        without a time. More than about 200000 changes do not fit into one commit.

          --dry-run  print what would change, and change nothing; rules are checked, too
          --prune    delete all other keys below the prefixes in the file; a key that somebody
                     adds there during the run may stay, until the next run
          --all      with --prune, if the prefix is / alone: delete all other keys

        examples:
          echo '{ "audio/": { volume: 0.7, muted: false } }' | statectl apply -
          echo '{ "audio/": { volume: 0.5 } }' | statectl apply - --prune --dry-run

        """

    static let convert = """
        Converts values when a schema has changed: runs COMMAND for each value that matches PATTERN and
        that a rule now refuses, and sets what it prints, all in one commit. Prints what changed, as
        apply does.

          ~ key = new TAB was old

        COMMAND reads the value on its standard input; $STATED_KEY and $STATED_REVISION say which one
        it is. The final line break of what it prints is not part of the new value. If it fails or
        prints nothing, or if the rules refuse what it prints, nothing changes: each such key is named
        with the reason, and it exits 4. If somebody else changes a value meanwhile, it is converted
        again. A value that expires does so when it would have.

        Which values are refused is what 'check' lists, which needs admin rights. It is safe to
        repeat: values that the rules allow are left alone. More than about 140000 changes do not fit
        into one commit: convert one prefix after the other.

          --every    convert all values that match PATTERN, also those that are valid
          --raw      what COMMAND prints is the value, with its final line break, even if it is empty
          --dry-run  print what would change, and change nothing; COMMAND runs

        examples:
          statectl convert network/ --dry-run -- sed 's/.*/{"address":&,"port":80}/'
          statectl convert audio/volume --every -- awk '{ print $1 / 100 }'

        """

    static let reset = """
        Deletes a key, or all keys below a prefix, in one commit, so that their defaults count again:
        those of defaults.d, and of rules. Prints what readers get now, as apply does:

          ~ key = default TAB was V   the key has its default again
          - key = value               it has none: it is absent now

        KEY and PREFIX/ are literal. 'diff --defaults' lists what is set to something else than its
        default, and 'get --long' prints where a default is from.

          --dry-run  print what would change, and change nothing
          --all      reset everything

        examples:
          statectl reset audio/volume
          statectl reset audio/ --dry-run

        """
}
