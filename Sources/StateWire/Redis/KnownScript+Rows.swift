extension KnownScript {
    /// All of them.
    ///
    /// A row of "many" is what the documentation of Redis shows, or what its users copy from each
    /// other.
    package static let rows: [Row] = [
        Row(
            .release,
            "redis-py",
            exact: "c3f8721cbb97f72bc19e972846bd7aaf91901658",
            plain: "3ad9a162dace07271ecd3d4fb06ce2c770f0a4f0"
        ),
        Row(
            .extend,
            "redis-py",
            exact: "a4e8783852e6b949f9ef3a97212805108459a890",
            plain: "568f251ae144c32659f1faa8c727866b755df9e0"
        ),
        Row(
            .expireInMilliseconds,
            "redis-py",
            exact: "1cac51482acf5858da00f6d685d68f886cd6b6b2",
            plain: "7bac02815679914e98a2d3abfc299e10f958a8cd"
        ),
        Row(
            .release,
            "redlock",
            exact: "fc03c85cef965af38f17fef05d68cc66c7d85c96",
            plain: "68861aa8724846c4d49fb1b44ff4aa7d57e0fe5c"
        ),
        Row(
            .release,
            "redlock-py",
            exact: "4e92fdc63815b3a0a2dd1c1df3694de73607c88d",
            plain: "68861aa8724846c4d49fb1b44ff4aa7d57e0fe5c"
        ),
        Row(
            .release,
            "pottery",
            exact: "a4aada0b36710970eedaaaeec4a6b7d8c78c4f80",
            plain: "68861aa8724846c4d49fb1b44ff4aa7d57e0fe5c"
        ),
        Row(
            .expireInMilliseconds,
            "pottery",
            exact: "ba015a80261b616e7a62d35df0b8e3edbe6c9414",
            plain: "9a986bcc6034fd4f6b064f07ab6b02d8bd2631e2"
        ),
        Row(
            .timeLeft,
            "pottery",
            exact: "f5f7bd3a3aa4a63c507c1155c5ea1219b350d992",
            plain: "ba8cbf0ef0d6ff0f14425c1ef69027c818650568"
        ),
        Row(
            .raise,
            "pottery",
            exact: "556429c2d8baca516a475ebb22d380cbccae7313",
            plain: "83f7bb47c48faf3372a01748589fd54d4d534a23"
        ),
        Row(
            .release,
            "rq",
            exact: "d44df6e1a0e76df1009084a91af26cc23ac035a9",
            plain: "3282598eeef4f5ca8a72be45b5abf53cb8a8d738"
        ),
        Row(
            .acquireOrRenew,
            "rq",
            exact: "4227fa753143e6f652e2e185d254964b3a7413a5",
            plain: "c2c0d71c1b6abae99238522646161a4d721e2f4a"
        ),
        Row(
            .acquireOrFail,
            "aioredlock",
            exact: "aecadef15d24ccd9360d8641cdec8e0337a0d343",
            plain: "e5a98a0e55c87e5b714f1ccd1374bfc938a60e9f"
        ),
        Row(
            .releaseOrFail,
            "aioredlock",
            exact: "0e084295a6567dabd5b7d5b4c99018cff95fceff",
            plain: "d018f8e52fd99497e21047bbe5251f1d842a9eca"
        ),
        Row(
            .timeLeftOrFail,
            "aioredlock",
            exact: "2239e3d89e276c90ec523515c30bcf0071823c7e",
            plain: "954572dbd553f2150c0530eee16869da441d6783"
        ),
        Row(
            .acquireAll,
            "redlock (Node.js)",
            exact: "96da70f7716f27d278a5218544df37fd8b0a5e4c",
            plain: "f4ff5804413438b225344cea793df441cb292c90"
        ),
        Row(
            .extendAll,
            "redlock (Node.js)",
            exact: "aed6f382e410db8ba7926d4e5e9aab410bf2a78a",
            plain: "e3bfef2d961bfd59db5714548a385da4d4a56eca"
        ),
        Row(
            .releaseAll,
            "redlock (Node.js)",
            exact: "e4612211c9f8f51c257e26e056b0a654b3187242",
            plain: "81e4c483ea051e9d8ca856306380f78372ae5eb6"
        ),
        Row(
            .addWithin,
            "limits",
            exact: "628bd136a573a06b346879695681af12ccef300f",
            plain: "fe4c5cb13c9ab947526381f4fc2658534592646f"
        ),
        Row(
            .deleteMatches,
            "limits",
            exact: "f2994557f1daca13bfef97c2a31ca4b174e031ca",
            plain: "c7c8961802eb2a284eb71cfc47575e72413f2b2a"
        ),
        Row(
            .windowCounts,
            "limits",
            exact: "e7a0a27d4101baabb124af209bb0245197a359a1",
            plain: "92c13946a172813c3acc2a9e587dd2be0d623391"
        ),
        Row(
            .acquireInWindow,
            "limits",
            exact: "e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7",
            plain: "7cac133cabd74c682acef6edf07026cbb284827a"
        ),
        Row(
            .unlock,
            "python-redis-lock",
            exact: "90da91872223f85eb1376a17e3c4df21ace8c54b",
            plain: "77019bcdce9ad7fa7389fb65be43f83d7dfc23c9"
        ),
        Row(
            .relock,
            "python-redis-lock",
            exact: "fed16109024d968d9496e4140fe1355bac05ebff",
            plain: "3946090a824e7dfb50a18d135fa3935ef504303a"
        ),
        Row(
            .resetLock,
            "python-redis-lock",
            exact: "afbc8014508f92e446b56567e8ba600e811c1bd5",
            plain: "3986acd439827adb910fe5dfad40513147966a69"
        ),
        Row(
            .resetLocks,
            "python-redis-lock",
            exact: "b121d3548d693116c3851b63befe947e49f28c7c",
            plain: "69ad966398192f65419b57f6ce6c399d5ce53fb8"
        ),
        Row(
            .release,
            "many",
            plain: "3282598eeef4f5ca8a72be45b5abf53cb8a8d738"
        ),
        Row(
            .expireInMilliseconds,
            "many",
            plain: "9a986bcc6034fd4f6b064f07ab6b02d8bd2631e2"
        ),
        Row(
            .expireInMilliseconds,
            "many",
            plain: "32f422988fa05890e7a585ffaa4b1d2a68afd30e"
        ),
        Row(
            .expireInSeconds,
            "many",
            plain: "9d14560700a7bb3af67165b582245aab2b4f080e"
        ),
        Row(
            .expireInSeconds,
            "many",
            plain: "2a533525be86fb29a5155ef27ebeacf9e56118d7"
        ),
        Row(
            .anyTimeLeft,
            "many",
            plain: "1f53009a069e5e9467ffd9c7f8c8232ce7785e31"
        ),
        Row(
            .anyTimeLeft,
            "many",
            plain: "9e431c8b711b5e144879468cd6f895f0288f0d71"
        ),
        Row(
            .timeLeftOrMinus3,
            "many",
            plain: "2335bee820b82932635c2ca369028a6886abe812"
        ),
        Row(
            .countInSeconds,
            "many",
            plain: "3b2ff67d19f00125f2926b1eacea624c8e4c778e"
        ),
        Row(
            .countInSeconds,
            "many",
            plain: "0223b497b5e1cd5154834995ac7e5da05753121f"
        ),
        Row(
            .countInMilliseconds,
            "many",
            plain: "02be1a7b2bbf845d0dab0e08411aeb2fe3fe4895"
        ),
    ]
}
