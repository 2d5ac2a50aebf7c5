# fish completion for PROGRAM: source this file, or save it in ~/.config/fish/completions
function __NAME_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' $words[-1])
    set -l value (string replace -r -- '^--[^=]*=' '' $words[-1])
    set -e words[1]
    set -l lines (PROGRAM __complete fish $words 2>/dev/null </dev/null)
    switch "$lines[1]"
        case files
            set lines (__fish_complete_path $value)
        case directories
            set lines (__fish_complete_directories $value)
        case '*'
            set -e lines[1]
    end
    test (count $lines) -gt 0; and printf '%s\n' "$prefix"$lines
end
complete -c PROGRAM -f -a '(__NAME_complete)'
