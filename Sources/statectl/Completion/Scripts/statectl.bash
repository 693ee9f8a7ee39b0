# shellcheck shell=bash
# Completion of statectl for bash. 'statectl complete' says how the last word may go on: verbs, options,
# keys, revisions, handlers. What it prints is text: nothing here expands it, and each word is quoted.

# Reads what is before the cursor as bash would, without expanding anything.
#
#   words  the words without their quotes; the last is the one that is completed
#   quote  the quotation mark that the last word leaves open
#   fixed  the part of the last word that readline keeps, without its quotes
#   plain  empty if that part has a character that bash would act upon
_statectl_read() {
    local line=$1 word="" rest="" character index kept=""
    local -i inside=0
    words=() quote="" fixed="" plain=yes
    for ((index = 0; index < ${#line}; index++)); do
        character=${line:index:1}
        case $quote$character in
        \\?*) # An escaped character.
            word+=$character quote=""
            ;;
        \\ | \' | \")
            quote=$character inside=1
            [[ $character == \\ ]] || fixed=$word kept=$rest
            ;;
        \'\' | \"\")
            quote="" fixed=$word kept=$rest
            ;;
        \"\\)
            rest=${line:index+1:1}
            case $rest in
            [\"\\\$\`]) word+=$rest ;;
            *) word+=\\$rest ;;
            esac
            rest="" index=$((index + 1))
            ;;
        [\ $'\t\n'])
            ((inside)) && words+=("$word")
            word="" rest="" kept="" fixed="" plain=yes inside=0
            ;;
        *)
            word+=$character inside=1
            # Between single quotes nothing is active, between double ones only these.
            case $quote$character in
            \"[\$\`] | [\$\`\(\)\<\>\&\|\;*?[\{~!]) rest+=$character ;;
            esac
            [[ -n $quote || $COMP_WORDBREAKS != *"$character"* ]] || fixed=$word kept=$rest
            ;;
        esac
    done
    [[ $quote != \\ ]] || quote=""
    words+=("$word")
    [[ -z $kept ]] || plain=""
}

# The text as a part of a word between the quotation marks that are open, or without any.
_statectl_quote() {
    local text=$2
    case $1 in
    \') quoted=${text//\'/\'\\\'\'} ;;
    \")
        text=${text//\\/\\\\}
        text=${text//\"/\\\"}
        text=${text//\$/\\\$}
        text=${text//\`/\\\`}
        quoted=${text//!/\"\'!\'\"}
        ;;
    *) if [[ -n $text ]]; then printf -v quoted %q "$text"; else quoted=""; fi ;;
    esac
}

# The command that statectl runs, and the files that are its arguments.
_statectl_command() {
    local name
    if [[ ${words[-2]} != -- ]]; then
        compopt -o default 2>/dev/null
        return
    fi
    while read -r name; do
        _statectl_quote "$quote" "${name#"$fixed"}"
        COMPREPLY+=("$quoted")
    done < <(compgen -c -- "${words[-1]}" | sort -u)
}

_statectl() {
    local words quote fixed plain quoted line rest
    local -a lines
    COMPREPLY=()
    _statectl_read "${COMP_LINE:0:COMP_POINT}"
    [[ -n $plain ]] || return 0
    mapfile -t lines < <(statectl complete -- "${words[@]:1}" 2>/dev/null)
    compopt -o nosort 2>/dev/null
    for line in "${lines[@]}"; do
        case $line in
        w* | p*)
            rest=${line:1}
            _statectl_quote "$quote" "${rest#"$fixed"}"
            # Readline closes the quotes if a word does not end in one.
            [[ $line == p* ]] || quoted+=$quote
            COMPREPLY+=("$quoted")
            ;;
        f) compopt -o default 2>/dev/null ;;
        c) _statectl_command ;;
        esac
    done
    # After a prefix, its keys follow.
    [[ ${#lines[@]} != 1 || ${lines[0]} != p* ]] || compopt -o nospace 2>/dev/null
}
complete -F _statectl statectl
