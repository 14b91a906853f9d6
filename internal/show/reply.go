package show

import (
	"fmt"
	"path/filepath"
	"strings"

	"sluice/daemon"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/text"
)

type unread struct {
	End  string `json:"end"` // its last lines
	File string `json:"file"`
}

// reply sets the reply of the reviewer, or else of the step's agent, if it could not be read.
func (sh *Shown) reply(root string) {
	if g := sh.Gate; g != nil && len(g.Rounds) > 0 {
		if q := g.Rounds[len(g.Rounds)-1]; q.MissWhy != "" && q.Outcome == "" {
			sh.Unread = lastReply(daemon.AttemptDir(root, sh.dir, g.ID, q.N, q.K))
		}
	}
	if at := sh.Attempt; sh.Unread == nil && at != nil && at.Failure != "" {
		sh.Unread = lastReply(sh.Files)
	}
}

// lastReply returns the unreadable reply of a launch's last correction, or of the launch.
func lastReply(dir string) *unread {
	for try := gates.MaxCorrections; try >= 0; try-- {
		at := dir
		if try > 0 {
			at = filepath.Join(dir, fmt.Sprintf("again-%d", try))
		}
		reply, _, err := atomicfile.OpenRegular(at, layout.ReplyFile, gates.MaxReply)
		if err != nil {
			continue
		}
		s := strings.TrimSpace(text.CleanLines(string(reply[max(0, len(reply)-maxOutput):]), maxOutput))
		lines := strings.Split(s, "\n")
		return &unread{End: strings.Join(lines[max(0, len(lines)-maxLines):], "\n"),
			File: filepath.Join(at, layout.ReplyFile)}
	}
	return nil
}
