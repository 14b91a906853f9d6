package serve

import (
	"context"
	"os/exec"
	"slices"

	"sluice/internal/fault"
)

// terminalPrograms are looked for where notify.terminal says nothing; what is behind them is run in them.
func terminalPrograms() [][]string {
	return [][]string{{"x-terminal-emulator", "-e"}, {"gnome-terminal", "--"}, {"konsole", "-e"}, {"xterm", "-e"}}
}

// stayOpen runs a command and keeps the terminal open until its output was read.
const stayOpen = `"$@"; printf '\nEnter closes this window. '; read -r _`

// terminal opens a terminal in dir with a command of sluice's.
func (s *liveSettings) terminal(ctx context.Context, dir string, args []string) error {
	term := s.now().Notify.Terminal
	if len(term) == 0 {
		for _, t := range terminalPrograms() {
			if file, err := exec.LookPath(t[0]); err == nil {
				term = append([]string{file}, t[1:]...)
				break
			}
		}
	}
	if len(term) == 0 {
		return fault.New("name one in notify.terminal", "no terminal program was found")
	}
	return s.parts.desk.Start(ctx, append(slices.Clone(term), append([]string{"sh", "-c", stayOpen, "sluice", s.parts.self}, args...)...), dir)
}
