# Completion of statectl for fish. 'statectl complete' says how the last word may go on: verbs, options,
# keys, revisions, handlers. What it prints is text: nothing here expands it, and fish quotes it.
function __statectl_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    # The word without its quotes, of which one may be open.
    set -l plain (string unescape -- $typed; or string unescape -- $typed\'; or string unescape -- $typed\"; or printf %s $typed)
    for line in (command statectl complete -- $words[2..-1] "$plain" 2>/dev/null)
        switch $line
            case 'w*' 'p*'
                string sub --start 2 -- $line
            case f
                __fish_complete_path "$plain"
            case c
                __fish_complete_subcommand --fcs-skip=(contains --index -- -- $words)
        end
    end
end
complete -c statectl -f -a '(__statectl_complete)'
