// The help of import and export.
extension Help {
    static let `import` = """
        Sets the keys and values in the lines of a file, in one commit for each 1,000 lines (or
        16 MiB). If FILE is -, it is standard input.

          key = value                as list prints it; \\n, \\t, \\xNN and \\\\ are decoded
          {"key":"k","value":"v"}    as export prints it; or "base64" for "value"

        Empty lines and lines that begin with # are skipped. The first = ends the key; a value may
        be empty or contain =. Lines may end with CR LF. A key may not be in two lines in a row; if
        it appears again later, the last line counts. If a line has another form, the message names
        its number and the exit code is 2; nothing of its batch is stored.

        A line that means something else in other files is refused, too: a value in quotes, ' # ' in
        a value, spaces at an end, 'export NAME=', '[section]', a final \\. If it is meant, write
        \\xNN as list does.

          --format F   how to read the file. Without it, .env, .env.NAME and NAME.env are env,
                       NAME.ini is ini, NAME.properties is properties, and others are lines
            lines      as above
            env        NAME=value, as for dotenv and systemd: 'export', quotes and comments do not
                       belong to the value
            ini        keys are below [section] as a prefix; spaces and quotes around a value do not
                       belong to it
            properties as Java reads it
                       A file that is not lines has at most 4 MiB. If a line is wrong, or programs
                       differ about it, or a key is there twice, nothing is stored
          --prefix P/  put the keys below P/
          --dots       lines are those of sysctl -a: dots in keys become / and / become dots, unless
                       / is first; lines in a row with the same key are one value of several
                       lines; there are no escapes. In another format, only the keys change

        examples:
          sysctl -a | statectl import --prefix kernel/ --dots -
          statectl export audio/ | statectl import --prefix backup/ -
          printf 'NAME="My App"\\n' | statectl import --format env --prefix web/ -

        """

    static let export = """
        Prints one JSON object a line with "key" and "value", or "base64" if the value is not UTF-8.
        import reads back exactly what was exported. The output is the state at one moment. (A
        daemon with --memory keeps no history: there, only each 1,000 keys are of one moment.)

        examples:
          statectl export > backup.jsonl
          statectl export audio/

        """
}
