# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_pretrained_global_optspecs
    string join \n json q/quiet cache-dir= h/help V/version
end

function __fish_pretrained_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_pretrained_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_pretrained_using_subcommand
    set -l cmd (__fish_pretrained_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c pretrained -n "__fish_pretrained_needs_command" -l cache-dir -d 'Look for models in DIR/pretrained, not in the user\'s cache directory [env: PRETRAINED_CACHE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_needs_command" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_needs_command" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_needs_command" -s V -l version -d 'Print version'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "asr" -d 'Turn speech into text'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "prefabs" -d 'List the model geometries that are known by name'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "inspect" -d 'Show what a model is: geometry, parameters, tensors, digests'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l cache-dir -d 'Look for models in DIR/pretrained, not in the user\'s cache directory [env: PRETRAINED_CACHE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -s h -l help -d 'Print help'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -f -a "whisper" -d 'Transcribe speech with OpenAI\'s Whisper'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s m -l model -d 'Model: a name, a `.pt` or safetensors file, or a directory [default: bundled:tiny.en, which is built in; base in a build without it]' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s l -l language -d 'Language that is spoken, as a code or an English name; `auto` detects it' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l task -d 'Keep the language, or put it into English' -r -f -a "transcribe\t'Text in the language that is spoken'
translate\t'Text in English'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s f -l format -d 'Output formats, as `srt,json`; more than one needs --output-dir [default: txt]' -r -f -a "txt\t'One segment a line, no times'
srt\t'SubRip subtitles'
vtt\t'WebVTT subtitles'
json\t'Segments with times, tokens and scores'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s o -l output-dir -d 'Write one file an input and format there, named after the input, not to stdout' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l device -d 'Where to compute' -r -f -a "cpu\t'The processor'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s t -l threads -d 'Threads to compute with, at most as many as the processor runs at once [default: all of them]' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l stats -d 'Say at the end, on stderr, where time and memory went' -r -f -a "text\t'One line for people'
json\t'One line of JSON'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l cache-dir -d 'Look for models in DIR/pretrained, not in the user\'s cache directory [env: PRETRAINED_CACHE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l cache-dir -d 'Look for models in DIR/pretrained, not in the user\'s cache directory [env: PRETRAINED_CACHE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l cache-dir -d 'Look for models in DIR/pretrained, not in the user\'s cache directory [env: PRETRAINED_CACHE_DIR]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l tensors -d 'List every tensor'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -s h -l help -d 'Print help (see more with \'--help\')'
