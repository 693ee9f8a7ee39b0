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
