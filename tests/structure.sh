#!/usr/bin/env bash
# Check the structure of the sources. A module is a folder with one public header, named after it, and at most one private
# header, inside.h. A row below names the modules that a module may use.
#   - A file includes headers of its own module, and public headers of the modules in its row. The row begins with the
#     module and its further public headers, where two audiences differ.
#   - With BUILD, a file takes symbols of its own module and of the modules in its row alone, a public header declares
#     what its own module defines, and no files use each other in a circle.
#   - No headers include each other in a circle. A row holds no module that is not used.
#   - The version of CMakeLists.txt is that of every other file that states it.
#   - The top folder holds the folders and files named here. Libraries neither exit nor print.
#   tests/structure.sh [BUILD [FOLDER]]    BUILD: a folder in which all is built; FOLDER: the tree to look at (this one)
set -u
build=${1:+$(realpath "$1")}
cd "${2:-$(dirname "$0")/..}" || exit 1

# module, further public headers : modules that it may use, lowest first
export FL_ARROWS='
policies policy.h policy_server.h random.h                  :
policies/compared                           : policies
policies/mfgpoeo                            : policies
policies/papers                             : policies
policies/server                             : policies
policies/tightrope                          : policies
policies/registry                           : policies policies/compared policies/mfgpoeo policies/papers policies/server policies/tightrope
models/math                                 :
models/laws device.h                        : models/math
models/fit                                  : models/math models/laws
models/chip                                 : models/math models/laws models/fit
models/unsound                              : models/math models/chip
traces/io records.h                         :
traces/files                                : traces/io
traces/serving                              : traces/io
traces/import                               : traces/io traces/files traces/serving
traces/profiler                             : traces/io traces/files traces/import
traces/open                                 : traces/io traces/files traces/serving traces/import traces/profiler
traces/pipeline                             : traces/io
sim/base                                    : policies
sim/instance                                : policies traces/io sim/base
sim/workload                                : policies models/math models/laws traces/io traces/files sim/base
sim/gpu work.h                              : policies models/math models/laws traces/io sim/base sim/workload
sim/advance                                 : policies models/laws traces/io sim/base sim/workload sim/gpu
sim/serving                                 : policies models/math models/laws traces/io traces/serving sim/base sim/workload sim/gpu
sim/node                                    : policies models/laws traces/io sim/base sim/instance sim/workload sim/gpu sim/advance sim/serving
sim/pipeline                                : policies models/math models/laws traces/io traces/pipeline sim/base sim/workload sim/gpu sim/node
sim/synth                                   : policies models/math models/laws traces/io traces/files traces/serving sim/workload
sim/draws                                   : policies traces/io sim/base sim/instance sim/node
sim/oracle                                  : policies models/math models/laws traces/io sim/base sim/workload sim/gpu sim/node
harness/base/cli commands.h                 : policies traces/io
harness/base/work                           : policies traces/io harness/base/cli
harness/base/json                           : traces/io harness/base/cli
harness/input/platform                      : policies models/math models/laws traces/io sim/instance harness/base/cli harness/base/json
harness/input/policy                        : policies policies/registry traces/io traces/pipeline sim/base sim/instance sim/node harness/base/cli
harness/chip                                : models/math models/laws models/chip models/unsound traces/io traces/files traces/import traces/open sim/workload harness/base/cli harness/base/json
harness/input/scene                         : policies models/math models/laws models/chip traces/io traces/files traces/serving traces/import traces/open traces/pipeline sim/base sim/instance sim/workload sim/gpu sim/serving sim/pipeline sim/synth harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/policy harness/chip
harness/foldline                            : policies policies/registry models/laws traces/io traces/files sim/base sim/instance sim/workload sim/gpu sim/node harness/base/cli harness/input/platform harness/input/policy harness/input/scene
harness/input/experiment                    : policies traces/io traces/open sim/instance sim/workload harness/base/cli harness/base/json harness/input/policy harness/input/scene
harness/study/trial                         : policies models/laws traces/io sim/base sim/instance sim/gpu sim/serving sim/node sim/draws sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/policy harness/input/scene harness/input/experiment
harness/study/compare                       : policies models/laws traces/io traces/import sim/base sim/instance sim/workload sim/serving sim/node sim/draws sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/policy harness/input/scene harness/input/experiment harness/study/trial
harness/study/grid                          : policies traces/io sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/experiment harness/study/trial harness/study/compare
harness/emulate/client abi.h nvml_names.inc :
harness/live/collector ring.h               :
harness/emulate/driver                      : policies models/laws traces/io sim/base sim/instance sim/workload sim/gpu sim/node harness/input/platform harness/input/scene harness/emulate/client harness/live/collector
harness/emulate/virtual                     : traces/io harness/emulate/client harness/emulate/driver
harness/live/vendor                         : policies traces/io
harness/live/vendor/nvml                    : policies traces/io sim/instance sim/node harness/live/vendor
harness/live/vendor/rsmi                    : policies traces/io sim/instance harness/live/vendor
harness/live/vendor/ze                      : policies traces/io sim/instance harness/live/vendor
harness/live/guard                          : policies traces/io sim/instance sim/node harness/live/vendor harness/live/vendor/nvml harness/live/vendor/rsmi harness/live/vendor/ze
harness/emulate/session                     : traces/io harness/emulate/client harness/emulate/driver harness/emulate/virtual harness/live/guard
harness/fit/chip                            : models/math models/laws models/fit models/chip traces/io traces/import traces/open harness/base/cli harness/base/work harness/base/json harness/input/platform harness/chip
harness/live/records                        : policies traces/io harness/live/collector harness/live/guard
harness/live/server                         : policies traces/io harness/live/guard
harness/log                                 : policies traces/io traces/files traces/serving sim/base sim/instance sim/serving sim/node harness/base/cli harness/base/json
harness/live/host                           : policies traces/io traces/files sim/instance sim/node harness/live/vendor harness/live/guard harness/live/records harness/live/server harness/log
harness/advise                              : policies models/laws models/chip traces/io traces/files traces/import traces/open sim/workload sim/gpu sim/oracle harness/base/cli harness/base/work harness/input/platform harness/input/policy harness/chip harness/input/scene harness/input/experiment harness/study/trial harness/study/compare
harness/cmd/machine                         : policies traces/io traces/files traces/import traces/profiler traces/open sim/instance harness/base/cli harness/base/json harness/input/platform harness/input/policy harness/input/scene harness/input/experiment harness/emulate/driver harness/live/vendor harness/live/guard harness/emulate/session harness/fit/chip harness/live/records harness/live/server harness/live/host models/chip harness/advise
harness/report/data                         : traces/io traces/files traces/import harness/base/cli harness/base/work harness/base/json harness/study/trial harness/study/compare
harness/report/picture                      : models/math models/laws models/fit traces/io traces/files traces/import traces/open harness/base/cli harness/base/work harness/input/platform harness/input/scene harness/report/data
harness/report/page                         : traces/io traces/files harness/base/cli harness/base/work harness/report/data harness/report/picture
harness/plan                                : policies models/math models/laws traces/io traces/pipeline sim/workload sim/pipeline sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/scene harness/study/trial
harness/serving                             : policies models/math models/laws traces/io traces/serving traces/open sim/base sim/workload sim/gpu sim/serving sim/node sim/synth sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/scene harness/input/experiment harness/study/trial harness/advise harness/plan
harness/cmd/study                           : policies models/laws traces/io traces/files traces/serving traces/import traces/open sim/base sim/instance sim/workload sim/gpu sim/serving sim/node sim/pipeline sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/policy harness/input/scene harness/input/experiment harness/study/trial harness/study/compare harness/study/grid harness/log harness/advise harness/report/data harness/report/picture harness/report/page harness/serving
harness/fit/policy                          : policies policies/compared policies/registry models/math models/laws models/fit traces/io traces/files traces/import traces/open sim/base sim/instance sim/workload sim/gpu sim/node sim/draws sim/oracle harness/base/cli harness/base/work harness/base/json harness/input/platform harness/chip harness/input/scene harness/input/experiment
harness/fit/trace                           : models/math models/laws models/fit traces/io traces/files traces/import traces/open harness/base/cli harness/base/work harness/base/json harness/input/platform harness/chip harness/input/scene
harness/cmd                                 : policies policies/registry models/math models/laws traces/io traces/files traces/serving traces/import traces/profiler traces/open sim/instance sim/synth harness/base/cli harness/base/work harness/base/json harness/input/platform harness/input/policy harness/input/scene harness/input/experiment harness/live/guard harness/fit/chip harness/live/host harness/cmd/machine harness/report/picture harness/plan harness/serving harness/cmd/study harness/fit/policy harness/fit/trace
harness                                     : traces/io harness/base/cli harness/base/work harness/cmd
harness/emulate/client/time                 : harness/emulate/client
'

perl - "$build" <<'PERL'
use strict;
use warnings;
use File::Find;
my ($build) = @ARGV;
my $bad = 0;
sub wrong { print STDERR "@_\n"; $bad = 1 }
my (%may, %public); # module: the modules it may use; its public headers
my @order;
for (grep { /:/ } split /\n/, $ENV{FL_ARROWS}) {
    my ($left, $right) = split /\s*:\s*/, $_, 2;
    my ($module, @second) = split ' ', $left;
    push @order, $module;
    $may{$module} = {map { $_ => 0 } split ' ', $right};
    $public{$module} = {map { $_ => 1 } ($module =~ m{([^/]+)$})[0] . '.h', @second};
}
my %place = map { $order[$_] => $_ } 0 .. $#order;
for my $module (@order) {
    for (keys %{$may{$module}}) {
        wrong("$module: its row names $_, which is no module above it in the table")
          unless exists $place{$_} && $place{$_} < $place{$module};
    }
}
my (@files, %text);
find({no_chdir => 1, wanted => sub { push @files, $_ if /\.(c|h|inc)$/ && -f }}, qw(sim policies models traces harness));
sub module_of { $_[0] =~ m{^(.*)/[^/]*$} ? $1 : '.' }
sub name_of { $_[0] =~ m{([^/]*)$}; $1 }
for my $file (sort @files) {
    my ($module, $name) = (module_of($file), name_of($file));
    wrong("$file: is in no module") unless $may{$module};
    wrong("$file: a module has one public header, named after it, and inside.h")
      if $may{$module} && $name =~ /\.h$/ && $name ne 'inside.h' && !$public{$module}{$name};
    open my $in, '<', $file or die "$file: $!\n";
    local $/;
    $text{$file} = <$in>;
}
my %includes;
for my $file (sort keys %text) {
    my ($module, $line) = (module_of($file), 0);
    for (split /\n/, $text{$file}) {
        $line++;
        next unless /^\s*#\s*include\s*(?:"([^"]+)"|<((?:sim|policies|models|traces|harness|tests)\/[^>]+)>)/;
        my $to = $1 // $2;
        my $other = module_of($to);
        if ($to =~ /\.\.\// || !$may{$other}) { wrong("$file:$line: includes $to, which is in no module"); next }
        $includes{$file}{$to} = 1;
        next if $other eq $module;
        exists $may{$module}{$other} ? $may{$module}{$other}++ : wrong("$file:$line: may not include $to");
        wrong("$file:$line: includes $to, which is not a public header of $other") unless $public{$other}{name_of($to)};
    }
}
my (%takes, $objects); # file: files whose symbols it takes
if ($build) {
    my (%linked, %named);
    open my $targets, '<', "$build/CMakeFiles/TargetDirectories.txt" or die "$build: not built by cmake\n";
    while (my $folder = <$targets>) {
        chomp $folder;
        next unless -d $folder && $folder =~ m{^\Q$build\E/((?:.*/)?)CMakeFiles/([^/]+)\.dir$} && $1 !~ m{^tests/};
        my ($from, $target, %base) = ($1, $2);
        my $where = -e "$build/${from}lib$target.a" ? 'the program' : $target;
        for my $object (sort split /\n/, `find '$folder' -name '*.c.o'`) {
            my $path = $from . substr($object, 1 + length $folder, -2);
            1 while $path =~ s{[^/]+/__/}{}; # as cmake writes ..
            next unless $text{$path}; # an object may be older than its file's move
            $linked{$where}{$object} = $path;
            $objects++;
            wrong("$target: two files have the name " . name_of($path)) if $base{name_of($path)}++;
        }
    }
    my %built = map { $_ => 1 } map { values %$_ } values %linked;
    for (sort grep { /\.c$/ && !$built{$_} } keys %text) { wrong("$_: has no object in $build") }
    my %home; # symbol: module
    for my $where (sort keys %linked) {
        my ($file, %owner) = $linked{$where};
        my @symbol = map { m{^(.*\.o):[0-9a-f ]+ ([TDBRCVWU]) (\S+)$} ? [$file->{$1}, $2, $3] : () }
          split /\n/, qx(nm -A @{[sort keys %$file]});
        die "nm cannot read the objects of $where\n" if $?;
        for (grep { $_->[1] ne 'U' } @symbol) {
            $owner{$_->[2]} = $_->[0];
            $home{$_->[2]}{module_of($_->[0])} = 1;
        }
        for (grep { $_->[1] eq 'U' && $owner{$_->[2]} } @symbol) {
            my ($user, $symbol, $to) = ($_->[0], $_->[2], $owner{$_->[2]});
            next if $user eq $to;
            $takes{$user}{$to} = $symbol;
            my ($module, $other) = (module_of($user), module_of($to));
            next if $module eq $other;
            exists $may{$module}{$other} ? $may{$module}{$other}++ : wrong("$user: may not take $symbol of $to");
        }
    }
    for my $header (sort grep { /\.h$/ } keys %text) {
        (my $bare = $text{$header}) =~ s{/\*.*?\*/}{}gs;
        while ($bare =~ /^(?!static\b|typedef\b)[A-Za-z_][^;{}#]*?\b(\w+)\([^;{}]*\)[^;{}]*;/gm) {
            my $of = $home{$1} or next;
            wrong("$header: declares $1 of " . join(' ', sort keys %$of)) unless $of->{module_of($header)};
        }
    }
}
for my $module (@order) {
    for (sort grep { !$may{$module}{$_} } keys %{$may{$module}}) { wrong("$module: does not use $_") if $build }
}
sub circles {
    my ($uses, $how) = @_;
    my (%state, @path);
    my $visit;
    $visit = sub {
        my ($file) = @_;
        $state{$file} = 1;
        push @path, $file;
        for my $to (sort keys %{$uses->{$file} // {}}) {
            if (($state{$to} // 0) == 1) {
                my @circle = @path;
                shift @circle while $circle[0] ne $to;
                wrong("a circle of files by $how: @circle $to");
            }
            $visit->($to) unless $state{$to};
        }
        pop @path;
        $state{$file} = 2;
    };
    $visit->($_) for grep { !$state{$_} } sort keys %$uses;
}
circles(\%includes, 'includes');
circles(\%takes, 'symbols');
print scalar(@order), " modules, ", scalar(keys %text), " files", $build ? ", $objects objects" : '', "\n" unless $bad;
exit $bad;
PERL
bad=$?

# Of a checkout the files that are kept count, so that what a user writes beside them does no harm.
top='.ci .clang-format .gitignore CITATION.cff CMakeLists.txt CONTRIBUTING.md LICENSE NEWS.md README.md SECURITY.md debian harness models plots policies sim tests traces'
kept=$(git ls-files 2>/dev/null | sed 's|/.*||' | sort -u)
for entry in ${kept:-$(ls)}; do
  case " $top " in *" $entry "*) continue ;; esac
  echo "$entry: does not belong into the top folder" >&2
  bad=1
done

version=$(sed -nE 's/^project\(foldline VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt) major=${version%%.*}
stated() { # FILE TEXT: a line of FILE begins with TEXT
  grep -qF -e "$2" <(sed 's/^/^/' "$1") && return
  echo "$1: has no line that begins with '${2#^}', as CMakeLists.txt has version $version" >&2
  bad=1
}
stated CITATION.cff "^version: $version"
stated NEWS.md "^## $version ("
stated debian/changelog "^foldline ($version-"
stated debian/control "^Package: libfoldline$major"
[ -e "debian/libfoldline$major.install" ] || { echo "debian/libfoldline$major.install: missing" >&2; bad=1; }

rows=$(grep -rnE '\b(exit|abort|printf|puts|perror)[[:space:]]*\(' models traces policies sim --include='*.c')
if [ -n "$rows" ]; then
  printf 'a library exits or prints:\n%s\n' "$rows" >&2
  bad=1
fi
[ $bad = 0 ] && echo "structure: the arrows run one way"
exit $bad
