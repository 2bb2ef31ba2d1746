#!/usr/bin/env bash
# No circle of files: none uses another that, over however many steps, uses it. X.c and X.h are one file, X. A file uses
# those that it includes, and those whose global symbols its object takes, by nm of the objects that are linked together
# (all archives are, and each shared library is by itself).
#   tests/circles.sh BUILD [ROOM...]   BUILD: a folder in which all is built; ROOM: only these (models, harness/live)
# Base names are unique within a library, as its archive's members have no folder.
set -euo pipefail
cd "$(dirname "$0")/.."

perl - "$@" <<'PERL'
use strict;
use warnings;
use Cwd 'abs_path';
my ($build, @rooms) = @ARGV;
die "usage: tests/circles.sh BUILD [ROOM...]\n" unless $build && -d $build;
$build = abs_path($build);
@rooms = split /\n/, `find policies models traces sim harness -type d` unless @rooms;
my @paths = map { glob "$_/*.[ch]" } @rooms;
my %source = map { s/\.[ch]$//r => 1 } @paths;
my (%uses, %built, %linked, $bad); # uses: file, file it uses, how; linked: where, object, its file
die "no files in @rooms\n" unless @paths;

for my $path (@paths) {
    my $file = $path =~ s/\.[ch]$//r;
    open my $text, '<', $path or die "$path: $!\n";
    while (<$text>) {
        $uses{$file}{$1}{"includes $1"} = 1 if /^\s*#\s*include\s*["<](.+)\.h[">]/ && $1 ne $file && $source{$1};
    }
}
open my $targets, '<', "$build/CMakeFiles/TargetDirectories.txt" or die "$build: not built by cmake\n";
while (my $folder = <$targets>) {
    chomp $folder;
    next unless -d $folder && $folder =~ m{^\Q$build\E/((?:.*/)?)CMakeFiles/([^/]+)\.dir$} && $1 !~ m{^tests/};
    my ($from, $target, %named) = ($1, $2);
    my $where = -e "$build/${from}lib$target.a" ? 'the program' : $target;
    for my $object (sort split /\n/, `find '$folder' -name '*.c.o'`) {
        my $path = $from . substr($object, 1 + length $folder, -2);
        1 while $path =~ s{[^/]+/__/}{}; # as cmake writes ..
        next unless -e $path && $source{$path =~ s/\.c$//r}; # an object may be older than its file's move
        $built{$path} = 1;
        $linked{$where}{$object} = $path =~ s/\.c$//r;
        push @{$named{$path =~ s{.*/}{}r}}, $path;
    }
    for (grep { @{$named{$_}} > 1 } sort keys %named) {
        $bad = print "$target has two files $_: @{$named{$_}}\n";
    }
}
for my $where (sort keys %linked) {
    my ($file, %owner) = $linked{$where};
    my @symbol = map { m{^(.*\.o):[0-9a-f ]+ ([TDBRCVWU]) (\S+)$} ? [$file->{$1}, $2, $3] : () }
      split /\n/, qx(nm -A @{[sort keys %$file]});
    die "nm cannot read the objects of $where\n" if $?;
    $_->[1] ne 'U' and $owner{$_->[2]} = $_->[0] for @symbol;
    for (grep { $_->[1] eq 'U' && $owner{$_->[2]} } @symbol) {
        my ($user, $owner) = ($_->[0], $owner{$_->[2]});
        $uses{$user}{$owner}{"takes $_->[2] of $owner"} = 1 if $user ne $owner;
    }
}
for (grep { /\.c$/ && !$built{$_} } @paths) {
    $bad = print "$_ has no object in $build\n";
}
my %reach; # file, all that it uses over any number of steps
for my $file (keys %uses) {
    my @next = keys %{$uses{$file}};
    while (defined(my $one = pop @next)) {
        push @next, keys %{$uses{$one} // {}} unless $reach{$file}{$one}++;
    }
}
my %told;
for my $file (sort grep { $reach{$_}{$_} } keys %reach) {
    next if $told{$file};
    my @circle = sort grep { $reach{$file}{$_} && $reach{$_}{$file} } keys %reach;
    @told{@circle} = (1) x @circle;
    $bad = print "circle of " . @circle . " files: @circle\n";
    for my $user (@circle) {
        print map { "  $user $_\n" } sort map { keys %{$uses{$user}{$_} // {}} } @circle;
    }
}
exit 1 if $bad;
print "circles: none among " . keys(%source) . " files\n";
PERL
