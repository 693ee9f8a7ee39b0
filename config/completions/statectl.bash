# Completion of statectl for bash: verbs, options, and keys below what is typed, which the daemon is
# asked for, at most 100 ms.
_statectl() {
    local word=${COMP_WORDS[COMP_CWORD]} verb="" at=() index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        case ${COMP_WORDS[index]} in
        --socket)
            at=(--socket "${COMP_WORDS[index + 1]}")
            ((index++))
            ;;
        -*) ;;
        *)
            verb=${COMP_WORDS[index]}
            break
            ;;
        esac
    done
    if [[ $word == -* ]]; then
        # The options are in the first line of the help, and in its table of common ones.
        mapfile -t COMPREPLY < <(compgen -W "$(statectl ${verb:+"$verb"} --help 2>/dev/null |
            grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$word")
        return
    fi
    if [[ -z $verb ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(statectl --help 2>/dev/null |
            sed -nE 's/^  ([a-z]+) .*/\1/p' | grep -vx statectl | sort -u)" -- "$word")
        return
    fi
    case $verb in
    import | txn | backup)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    status | health | metrics | ping | sync | reload | rules | compact | watches | handlers) return ;;
    esac
    # The level below the last slash: keys, and prefixes that end in one.
    local prefix=/
    if [[ $word == */* ]]; then prefix=${word%/*}/; fi
    mapfile -t COMPREPLY < <(compgen -W "$(statectl "${at[@]}" --reply-timeout 100ms list "$prefix" \
        --children 2>/dev/null)" -- "$word")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]]; then compopt -o nospace; fi
}
complete -F _statectl statectl
