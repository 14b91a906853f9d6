package egress

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes of ForwardMain where the command did not start; the others are the command's own, or 128 and the number of the
// signal that ended it.
const (
	exitUsage      = 2
	exitNotStarted = 127
)

// ForwardMain is what runs inside a sandbox, first: it forwards to the proxy and runs the command, whose exit code it
// gives. args are the proxy's socket, the loopback ports to hand on, joined by commas, and the command.
func ForwardMain(args []string) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, "sluice: it is started by the daemon, inside a sandbox, not by hand")
		return exitUsage
	}
	var ports []string
	if args[1] != "" {
		ports = strings.Split(args[1], ",")
	}
	socket, args := args[0], args[2:]
	// What is asked to end is the command, which is asked itself. Notified, not ignored: that would be passed on to it.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	f, err := Forward(socket, ports)
	if err != nil {
		fmt.Fprintf(os.Stderr, "sluice: the sandbox's network: %v\n", err)
		return exitNotStarted
	}
	defer f.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), f.Vars()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &ended):
		fmt.Fprintf(os.Stderr, "sluice: command %s: %v\n", args[0], err)
		return exitNotStarted
	}
	if s, ok := ended.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return ended.ExitCode()
}
