# A program that tries to reach what is not its own, and says what it reached. Its arguments are JSON without
# escapes: {"daemon": 7, "data": "/folder", "secret": "/file", "socket": "/file"}.
use strict;
use warnings;
use POSIX ();
use Socket;

my $arguments = <STDIN>;
my ($daemon) = $arguments =~ /"daemon":\s*(\d+)/;
my %path = $arguments =~ /"(data|secret|socket)":\s*"([^"]+)"/g;
my $victim = "$path{data}/victim";

sub reads {
    open(my $file, '<', $_[0]) or return 0;
    return defined sysread($file, my $read, 1);
}

sub connects {
    socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or return 0;
    return connect($socket, pack_sockaddr_un($path{socket}));
}

sub in_child {
    my $pid = fork();
    if ($pid == 0) { POSIX::_exit($_[0]->() ? 0 : 1) }
    waitpid($pid, 0);
    return $? == 0;
}

my @tries = (
    ['database' => sub { reads("$path{data}/vocative.db") }],
    ['folder' => sub { opendir(my $folder, $path{data}) }],
    ['new file' => sub { open(my $file, '>', "$path{data}/new") }],
    ['append' => sub { open(my $file, '>>', $victim) }],
    ['truncate' => sub { truncate($victim, 0) }],
    ['chmod' => sub { chmod(0600, $victim) }],
    ['link' => sub { link($victim, 'stolen') or symlink($victim, 'stolen') && reads('stolen') }],
    ['rename' => sub { rename($victim, "$victim.moved") && rename("$victim.moved", $victim) }],
    ['secret' => sub { reads($path{secret}) }],
    ['socket' => sub { connects() }],
    ['environ' => sub { reads("/proc/$daemon/environ") }],
    ['maps' => sub { reads("/proc/$daemon/maps") }],
    ['mem' => sub { open(my $file, '+<', "/proc/$daemon/mem") }],
    ['fd' => sub { opendir(my $folder, "/proc/$daemon/fd") }],
    ['signal' => sub { kill(0, $daemon) }],
    ['group' => sub { in_child(sub { POSIX::setpgid(0, 0) }) }],
    ['session' => sub { in_child(sub { POSIX::setsid() > 0 }) }],
    ['network' => sub { socket(my $socket, PF_INET, SOCK_STREAM, 0) }],
    ['datagrams' => sub { socketpair(my $one, my $other, AF_UNIX, SOCK_DGRAM, 0) }],
    ['unlink' => sub { unlink($victim) }],
);
my @reached = map { $_->[0] } grep { $_->[1]->() } @tries;
my @variables = sort keys %ENV;
open(my $own, '>', 'own') or die "its own folder is closed to it: $!";
sub json { '[' . join(', ', map { "\"$_\"" } @_) . ']' }
print '{"reached": ', json(@reached), ', "variables": ', json(@variables), "}\n";
