// The help of the verbs that watch over the daemon.
extension Help {
    static let health = """
        Prints in a line whether the daemon serves and stores. The exit code says the same:

          0  ok: it answers, and accepts writes
          1  read-only: it answers, and refuses writes: the disk or the memory is full, or the store
             is being opened again
          2  unreachable: it does not answer
          3  damaged: what is stored is damaged, or a file of the store is missing
          4  degraded: all is accepted, but the log cannot be settled into the database

        If several apply, the first of 2, 3, 1, 4.

        examples:
          statectl health
          statectl health --json --reply-timeout 2s

        """

    static let credential = """
        Answers one request of systemd on standard input, as the unit stated-credentials.socket has
        it: a service whose unit has LoadCredential=NAME:/run/stated/credentials.sock gets the value
        of PREFIX/UNIT/NAME, where UNIT is its unit. An absent key gives it an empty credential.

        examples:
          statectl set credentials/mail.service/password secret

        """

    static let metrics = """
        Prints the metrics of the daemon in the text format of Prometheus. You need admin rights.

          --http  answers one HTTP request on standard input and output, as the unit
                  stated-metrics.socket has it: GET /metrics, and GET /health, which has the
                  status 200 or 503
          --textfile FILE
                  replaces FILE at once by the metrics, for a collector that reads files; if they
                  cannot be had, FILE stays as it is and the exit code says why

        examples:
          statectl metrics
          statectl metrics --textfile stated.prom

        """
}
