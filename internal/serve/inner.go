package serve

import (
	"io"

	"sluice/agents"
	"sluice/agents/sandbox"
	"sluice/deploy"
	"sluice/notify"
)

// The commands that this binary runs for itself, as separate processes.
const (
	shimCommand  = deploy.HostCommand
	NotifyHelper = "notify-helper"
)

// Inner runs the commands that sluice starts for itself, before any other setup: they live long, or
// must not hang.
func Inner(args []string, stdin io.Reader) (code int, ours bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case shimCommand:
		return agents.ShimMain(args[1:]), true
	case NotifyHelper:
		return notify.HelperMain(stdin), true
	case sandbox.CheckCommand:
		return sandbox.CheckMain(args[1:]), true
	}
	return 0, false
}
