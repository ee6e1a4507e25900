# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_pretrained_global_optspecs
    string join \n json q/quiet progress= cache-dir= hf-cache= upstream-cache-dir= manifest= offline origin= mirror= token-file= no-derived verify h/help V/version
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

complete -c pretrained -n "__fish_pretrained_needs_command" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_needs_command" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_needs_command" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_needs_command" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_needs_command" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_needs_command" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_needs_command" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_needs_command" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_needs_command" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_needs_command" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_needs_command" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_needs_command" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_needs_command" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_needs_command" -s V -l version -d 'Print version'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "asr" -d 'Turn speech into text'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "fetch" -d 'Bring models to this machine, to be used later without a network'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "cache" -d 'The models on this machine'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "prefabs" -d 'List the model geometries that are known by name'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "inspect" -d 'Show what a model is: origin, files, geometry, parameters, tensors, digests'
complete -c pretrained -n "__fish_pretrained_needs_command" -f -a "doctor" -d 'Say what this machine and this build have, what a run would use, and where models are looked for'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and not __fish_seen_subcommand_from whisper" -s h -l help -d 'Print help (see more with \'--help\')'
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
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l precision -d 'What to compute in; `auto` is q8' -r -f -a "auto\t'What is fastest without costing words'
f32\t'As exactly as the weights are'
bf16\t'Products of bfloat16 numbers'
q8\t'Products of 8-bit integers'
q4\t'Weights in 4 bits'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l beam-size -d 'Texts followed at a time when decoding; wider beams than 1, the likeliest token at each step, are not to be had' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s t -l threads -d 'Threads to compute with, at most as many as the processor runs at once [env: PRETRAINED_THREADS] [default: one a core that this process may use]' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l set -d 'Use the file PATH as the model\'s KEY, one of those that `inspect` lists; may be repeated' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l vocab -d 'Short for `--set vocabulary=PATH`, a file in tiktoken form' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l tokenizer -d 'Short for `--set tokenizer=PATH`' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l config -d 'Short for `--set config=PATH`' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l state-dict-key -d 'Where the tensors are in a torch archive, as `model.state_dict`, when that is not found by itself' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l stats -d 'Say at the end, on stderr, where time and memory went' -r -f -a "text\t'One line for people'
json\t'One line of JSON'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l lenient -d 'Pass over tensors that have no place in the model, which otherwise are an error'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l dry-run -d 'Say which files the model is made of, where they are and what would be fetched, and stop'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand asr; and __fish_seen_subcommand_from whisper" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l include -d 'Of a repository of the hub, fetch what matches, not what is usually needed; `*` crosses slashes; may be repeated' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l exclude -d 'Leave out what matches; may be repeated' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l revision -d 'Revision of repositories that are named without one' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -s j -l jobs -d 'Files fetched at once' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l retries -d 'Further attempts after one that failed' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l lock-timeout -d 'Longest wait for another process that fetches the same, in seconds [default: a day]' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l dry-run -d 'Say what would be fetched from where, and stop'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l keep-going -d 'Go on after a file or a model that failed, and report all at the end'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l refresh -d 'Ask the hub where a branch points now, even if it is here'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l force -d 'Fetch again what is here'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l allow-pickle -d 'Take weights that a repository has only as a pickle; nothing in it is run when it is read'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l allow-unpinned -d 'Take files that nothing pins; their digests are printed'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "info" -d 'Say where the caches are, what decided that, and how full they are'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "path" -d 'Print where the caches are, or where the files of models are'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "ls" -d 'List what is in the caches'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "verify" -d 'Hash what is in the caches, and say what is damaged; no network is needed'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "rm" -d 'Remove models from the caches, with what was derived from them; a file that another model uses stays'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "prune" -d 'Remove what no model needs: revisions that no branch means any more, what interrupted fetches left, and what was derived from weights that are gone'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "export" -d 'Write models to a tar archive, for `cache import` on another machine'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and not __fish_seen_subcommand_from info path ls verify rm prune export import" -f -a "import" -d 'Take files into the caches, whatever they are called: by what they hash to'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -s f -l filter -d 'Only entries for which this holds, as `size>1GB`, `accessed>30d`, `state=unfinished`; may be repeated' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l sort -d 'Order, as `size`, `accessed:asc`, `name`' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l limit -d 'No more entries than that' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l revisions -d 'Each revision of a repository by itself'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l derived -d 'Also what was derived from weights: weights laid out for this machine'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -s y -l yes -d 'Do not ask'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l dry-run -d 'Say what would go, and stop'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l older-than -d 'Also models that were last used longer ago than that, as `30d`' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -s y -l yes -d 'Do not ask'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l dry-run -d 'Say what would go, and stop'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -s o -l output -d 'Write there, not to stdout' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand cache; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand prefabs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l tensors -d 'List every tensor'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l explain -d 'Say what each namespace of models answered to the name'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -s t -l threads -d 'Threads to compute with, at most as many as the processor runs at once [env: PRETRAINED_THREADS] [default: one a core that this process may use]' -r
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l progress -d 'How downloads say how far they are: a bar on a terminal and a line now and then elsewhere, a bar, lines of JSON on stderr, or not at all [env: HF_HUB_DISABLE_PROGRESS_BARS]' -r -f -a "auto\t'A bar on a terminal, a line now and then elsewhere'
bar\t'A bar'
json\t'Lines of JSON on stderr'
none\t'Nothing'"
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l cache-dir -d 'Keep to DIR: find models there, put them there, and look nowhere else [env: PRETRAINED_CACHE_DIR, which moves this program\'s own cache only]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l hf-cache -d 'The hub\'s cache, shared with Python\'s libraries [env: HF_HUB_CACHE, HF_HOME]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l upstream-cache-dir -d 'Where the openai-whisper package keeps its downloads [default: ~/.cache/whisper]' -r -f -a "(__fish_complete_directories)"
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l manifest -d 'A table of models of your own, whose names win; may be repeated [env: PRETRAINED_MANIFEST]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l origin -d 'The hub\'s address [env: HF_ENDPOINT]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l mirror -d 'Where a directory of this program\'s cache is served, asked first for each pinned file; may be repeated [env: PRETRAINED_MIRROR]' -r -f
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l token-file -d 'A file that holds the token for the hub [env: HF_TOKEN, HF_TOKEN_PATH]' -r -F
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l json -d 'Write one JSON document, and errors as JSON too'
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -s q -l quiet -d 'Keep stderr for errors'
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l offline -d 'Use what is on this machine, and ask nothing of any network [env: PRETRAINED_OFFLINE, HF_HUB_OFFLINE]'
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l no-derived -d 'Keep nothing that is worked out from weights, such as weights laid out for this machine, and read nothing that was kept [env: PRETRAINED_NO_DERIVED]'
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -l verify -d 'Hash each file before it is used, and stop if it is not the published one; implies --no-derived'
complete -c pretrained -n "__fish_pretrained_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
