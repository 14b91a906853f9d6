package serve

import (
	"context"
	"os/exec"
	"slices"

	"sluice/internal/fault"
)

// terminalPrograms returns the programs to try without notify.terminal, each with the option before
// a command.
func terminalPrograms() [][]string {
	return [][]string{{"x-terminal-emulator", "-e"}, {"gnome-terminal", "--"}, {"konsole", "-e"}, {"xterm", "-e"}}
}

// stayOpen runs a command and keeps the terminal open until Enter.
const stayOpen = `"$@"; printf '\nEnter closes this window. '; read -r _`

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
	return s.parts.desk.Start(ctx,
		append(slices.Clone(term), append([]string{"sh", "-c", stayOpen, "sluice", s.parts.Self}, args...)...), dir)
}
