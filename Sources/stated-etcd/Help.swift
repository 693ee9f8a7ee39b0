/// What `stated-etcd --help` prints.
let helpText = """
    stated-etcd makes a prefix of etcd keys of stated: it follows the prefix and brings each commit to
    the daemon, which keeps a copy that outlives both and serves it like its own keys; and it sends
    to etcd what clients of the daemon change there.

    Usage: stated-etcd [--config FILE] [--endpoints URL,…] [--socket PATH] [--ca FILE]
                       [--cert FILE --key FILE] [--max-txn-ops N] [--max-request-bytes N]

      stated-etcd
          Follow the etcd on this machine, http://127.0.0.1:2379.

      stated-etcd --endpoints https://etcd1:2379,https://etcd2:2379 --ca ca.pem \\
                  --cert web1.pem --key web1-key.pem
          Follow a cluster by TLS. If a member does not answer, the next one is tried.

    The prefix is that of the rule with backing: "cluster" in the configuration of stated, which also
    names the user that this program must run as:

      cluster: { user: "stated-cluster", node: "web1" },
      rules: [{ keys: "app/", backing: "cluster" }]

    The user of etcd must be allowed to read and write the prefix; or to read it, and to write below
    PREFIX.stated/: the key PREFIX.stated/beat/NODE is set every 2 seconds, and once it has come back
    nothing is missing.

    Options:
      --endpoints URL,…   The members of etcd. Default: http://127.0.0.1:2379.
      --socket PATH       The daemon's socket. Default: as for statectl.
      --ca FILE           The authorities of the members' certificates, for https.
      --cert FILE         The certificate of this machine; its common name is the user of etcd.
      --key FILE          The key of that certificate.
      --max-txn-ops N     What etcd takes in one transaction, as its own option. Default: 128.
      --max-request-bytes N
                          The same in bytes. Default: 1572864.
      --config FILE       The same in JSON5: { endpoints: ["…"], socket: "…", ca: "…", cert: "…",
                          key: "…", maxTxnOps: …, maxRequestBytes: … }. Options of the command line
                          override it.
      --help, --version   Print this, or the version.

    Exit codes: 0 stopped by a signal; 2 wrong configuration or command line.

    """
