
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'pretrained' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'pretrained'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'pretrained' {
            [CompletionResult]::new('--cache-dir', '--cache-dir', [CompletionResultType]::ParameterName, 'Look for models in DIR/pretrained, not in the user''s cache directory [env: PRETRAINED_CACHE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write one JSON document, and errors as JSON too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('asr', 'asr', [CompletionResultType]::ParameterValue, 'Turn speech into text')
            [CompletionResult]::new('prefabs', 'prefabs', [CompletionResultType]::ParameterValue, 'List the model geometries that are known by name')
            [CompletionResult]::new('inspect', 'inspect', [CompletionResultType]::ParameterValue, 'Show what a model is: geometry, parameters, tensors, digests')
            break
        }
        'pretrained;asr' {
            [CompletionResult]::new('--cache-dir', '--cache-dir', [CompletionResultType]::ParameterName, 'Look for models in DIR/pretrained, not in the user''s cache directory [env: PRETRAINED_CACHE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write one JSON document, and errors as JSON too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('whisper', 'whisper', [CompletionResultType]::ParameterValue, 'Transcribe speech with OpenAI''s Whisper')
            break
        }
        'pretrained;asr;whisper' {
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'Model: a name, a `.pt` or safetensors file, or a directory [default: bundled:tiny.en, which is built in; base in a build without it]')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'Model: a name, a `.pt` or safetensors file, or a directory [default: bundled:tiny.en, which is built in; base in a build without it]')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Language that is spoken, as a code or an English name; `auto` detects it')
            [CompletionResult]::new('--language', '--language', [CompletionResultType]::ParameterName, 'Language that is spoken, as a code or an English name; `auto` detects it')
            [CompletionResult]::new('--task', '--task', [CompletionResultType]::ParameterName, 'Keep the language, or put it into English')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Output formats, as `srt,json`; more than one needs --output-dir [default: txt]')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Output formats, as `srt,json`; more than one needs --output-dir [default: txt]')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write one file an input and format there, named after the input, not to stdout')
            [CompletionResult]::new('--output-dir', '--output-dir', [CompletionResultType]::ParameterName, 'Write one file an input and format there, named after the input, not to stdout')
            [CompletionResult]::new('--device', '--device', [CompletionResultType]::ParameterName, 'Where to compute')
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'Threads to compute with, at most as many as the processor runs at once [default: all of them]')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Threads to compute with, at most as many as the processor runs at once [default: all of them]')
            [CompletionResult]::new('--stats', '--stats', [CompletionResultType]::ParameterName, 'Say at the end, on stderr, where time and memory went')
            [CompletionResult]::new('--cache-dir', '--cache-dir', [CompletionResultType]::ParameterName, 'Look for models in DIR/pretrained, not in the user''s cache directory [env: PRETRAINED_CACHE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write one JSON document, and errors as JSON too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pretrained;prefabs' {
            [CompletionResult]::new('--cache-dir', '--cache-dir', [CompletionResultType]::ParameterName, 'Look for models in DIR/pretrained, not in the user''s cache directory [env: PRETRAINED_CACHE_DIR]')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write one JSON document, and errors as JSON too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'pretrained;inspect' {
            [CompletionResult]::new('--cache-dir', '--cache-dir', [CompletionResultType]::ParameterName, 'Look for models in DIR/pretrained, not in the user''s cache directory [env: PRETRAINED_CACHE_DIR]')
            [CompletionResult]::new('--tensors', '--tensors', [CompletionResultType]::ParameterName, 'List every tensor')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write one JSON document, and errors as JSON too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Keep stderr for errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
