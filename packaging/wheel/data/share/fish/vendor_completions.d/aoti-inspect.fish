# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_aoti_inspect_global_optspecs
    string join \n format= json color= o/output= v/verbose h/help V/version
end

function __fish_aoti_inspect_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_aoti_inspect_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_aoti_inspect_using_subcommand
    set -l cmd (__fish_aoti_inspect_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -s V -l version -d 'Print version'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "show" -d 'What an artefact is: device, platform, inputs, outputs, constants, kernels, needs (taken when no command is given)'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "verify" -d 'Compare artefacts with a load configuration; the exit code is the verdict'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "explain" -d 'The page of a finding code; from an error to its likely cause'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "diff" -d 'What changed between two builds, for callers and for hosts'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "host" -d 'This machine as a target file: GPUs, driver, CPU, glibc, libstdc++, page size'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "codes" -d 'List the checks, or print the page of one'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "init" -d 'Write a commented aoti-inspect.toml, with an artefact\'s interface as the agreed one'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "schema" -d 'JSON schema of the output'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "completions" -d 'Completions for a shell'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "man" -d 'Manual page'
complete -c aoti-inspect -n "__fish_aoti_inspect_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l files-from -d 'More of them, one a line, from a file; - is standard input' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l only -d 'Only these facts: inputs,kernels,…' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l shape -d 'With --trace: sizes of an input, 2x10, \'[2, 10]\', scalar; the trace then has numbers' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l dim -d 'With --trace: the size of a symbol (s27=8), or of a NAME in a shape' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l model -d 'With --trace: the model of a package that the sizes are for' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l no-interpret -d 'Do not interpret machine code; what only it tells is unknown'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l digest -d 'SHA-256 of the files'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l all -d 'List everything, however long'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l call -d 'How to call the model from Python and C++'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l deep -d 'Read machine code even where source states the facts, and compare'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l trace -d 'What one run does, step by step: allocations, operators, kernels, and the peak of memory'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l files-from -d 'More of them, one a line, from a file; - is standard input' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l model -d 'The model of a package' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l device -d 'cuda, cpu, cuda:1, xpu, mps' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l input -d 'An input: \'f32[2, 10][10, 1]cuda:0\', f32:2x10/10x1@cuda:0, f32[2,10]{10,1}:cuda; without WHICH= the whole list in order; none for a model without inputs' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l shape -d 'Sizes of an input: 2x10, \'[2, 10]\', scalar' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l dtype -d 'Element type of an input: float32, f32, torch.float32' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l stride -d 'Strides of an input: 10x1, contiguous, channels_last' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l inputs -d 'Number of inputs' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l dim -d 'Size or range that a NAME in a shape stands for: B=1..512' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l cases -d 'Recorded lists of inputs, one JSON object a line' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l gpu -d 'A GPU: H100, sm_90, 9.0, \'NVIDIA A10G\'' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l driver -d 'GPU driver: 550.54' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l gpu-memory -d 'Memory of the GPU: 24GiB' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l cpu -d 'CPU: avx2, x86-64-v3, neoverse-v1, native' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l torch -d 'torch of the target, as torch.__version__ prints it: 2.9.1+cu128' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l libtorch -d 'Folder with the target\'s libtorch' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l loader -d 'What opens it' -r -f -a "cpp\t'AOTIModelPackageLoader, without Python'
python\t'torch._inductor.aoti_load_package'
so\t'a runner class or the C interface, without a package'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l platform -d 'Platform: linux-x86_64' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l glibc -d 'glibc: 2.31' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l libstdcxx -d 'libstdc++: 3.4.30' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l page-size -d 'Page size: 64k' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l weights -d 'Safetensors file with the weights that the caller loads; several when they are sharded' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l metadata -d 'A metadata key that must be there, with its value' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l exported -d 'The exported program that it was compiled from' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l ops -d 'Operators that the target has: mylib::blend, \'mylib::*\'' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l op-library -d 'Library that registers operators on the target' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l target -d 'A target of aoti-inspect.toml by name, or a target file (TOML or JSON)' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l config -d 'The project file, instead of the nearest aoti-inspect.toml upwards' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l baseline -d 'Findings that are known and do not fail' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l write-baseline -d 'Write what is found now as the baseline; the exit code is 0 unless a file is unreadable' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l require -d 'These topics must be asked, else exit 2: gpu,torch,inputs,…' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l allow-unknown -d 'An unknown that was asked for does not fail; with CODE only for that check' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l no-interpret -d 'Do not interpret machine code; what only it tells is unknown'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l digest -d 'SHA-256 of the files'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l this-host -d 'This machine\'s GPUs, driver, CPU, glibc, libstdc++ and page size'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l no-config -d 'Leave the project file alone'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l log -d 'The log; - is standard input' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l message -d 'An error text instead of a log' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l exit -d 'How the process ended, when there is no text: 139, -11, SIGSEGV' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l model -d 'The model of a package' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l device -d 'cuda, cpu, cuda:1, xpu, mps' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l input -d 'An input: \'f32[2, 10][10, 1]cuda:0\', f32:2x10/10x1@cuda:0, f32[2,10]{10,1}:cuda; without WHICH= the whole list in order; none for a model without inputs' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l shape -d 'Sizes of an input: 2x10, \'[2, 10]\', scalar' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l dtype -d 'Element type of an input: float32, f32, torch.float32' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l stride -d 'Strides of an input: 10x1, contiguous, channels_last' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l inputs -d 'Number of inputs' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l dim -d 'Size or range that a NAME in a shape stands for: B=1..512' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l cases -d 'Recorded lists of inputs, one JSON object a line' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l gpu -d 'A GPU: H100, sm_90, 9.0, \'NVIDIA A10G\'' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l driver -d 'GPU driver: 550.54' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l gpu-memory -d 'Memory of the GPU: 24GiB' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l cpu -d 'CPU: avx2, x86-64-v3, neoverse-v1, native' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l torch -d 'torch of the target, as torch.__version__ prints it: 2.9.1+cu128' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l libtorch -d 'Folder with the target\'s libtorch' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l loader -d 'What opens it' -r -f -a "cpp\t'AOTIModelPackageLoader, without Python'
python\t'torch._inductor.aoti_load_package'
so\t'a runner class or the C interface, without a package'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l platform -d 'Platform: linux-x86_64' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l glibc -d 'glibc: 2.31' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l libstdcxx -d 'libstdc++: 3.4.30' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l page-size -d 'Page size: 64k' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l weights -d 'Safetensors file with the weights that the caller loads; several when they are sharded' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l metadata -d 'A metadata key that must be there, with its value' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l exported -d 'The exported program that it was compiled from' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l ops -d 'Operators that the target has: mylib::blend, \'mylib::*\'' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l op-library -d 'Library that registers operators on the target' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l target -d 'A target of aoti-inspect.toml by name, or a target file (TOML or JSON)' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l redact -d 'Mask paths and names of weights, for public issue trackers'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l no-interpret -d 'Do not interpret machine code'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l this-host -d 'This machine\'s GPUs, driver, CPU, glibc, libstdc++ and page size'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -l fail-on -d 'Least grade of a change that gives exit 1' -r -f -a "breaking\t'something that worked may fail'
compatible\t'anything that a caller or host could notice'
cosmetic\t'anything'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -l no-interpret -d 'Do not interpret machine code'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -l libtorch -d 'Folder with a libtorch, whose exports are written too' -r -F
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand host" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand codes" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand codes" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand codes" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand codes" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand codes" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand codes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -l force -d 'Write over an existing file'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -l stdout -d 'Print instead of writing aoti-inspect.toml'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand schema" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand schema" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand schema" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand schema" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand schema" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand completions" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand completions" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand completions" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand completions" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand completions" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand man" -l format -d 'Form of the output' -r -f -a "text\t'for people'
json\t'one document'
jsonl\t'one artefact a line'
markdown\t'job summaries and issues'
github\t'workflow commands of GitHub Actions'
sarif\t'code scanning'
junit\t'test reports'
csv\t'tables: one row per model'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand man" -l color -d 'Colour in text' -r -f -a "auto\t'on a terminal, unless NO_COLOR is set'
always\t'also in files and pipes'
never\t'not at all'"
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand man" -s o -l output -d 'Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable' -r
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand man" -l json -d 'The same as --format json'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand man" -s v -l verbose -d 'Passed checks, evidence, unknown facts and members too'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "show" -d 'What an artefact is: device, platform, inputs, outputs, constants, kernels, needs (taken when no command is given)'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "verify" -d 'Compare artefacts with a load configuration; the exit code is the verdict'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "explain" -d 'The page of a finding code; from an error to its likely cause'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "diff" -d 'What changed between two builds, for callers and for hosts'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "host" -d 'This machine as a target file: GPUs, driver, CPU, glibc, libstdc++, page size'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "codes" -d 'List the checks, or print the page of one'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "init" -d 'Write a commented aoti-inspect.toml, with an artefact\'s interface as the agreed one'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "schema" -d 'JSON schema of the output'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "completions" -d 'Completions for a shell'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "man" -d 'Manual page'
complete -c aoti-inspect -n "__fish_aoti_inspect_using_subcommand help; and not __fish_seen_subcommand_from show verify explain diff host codes init schema completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
