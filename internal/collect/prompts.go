package collect

import (
	"errors"

	"sluice/agents/launch"
	"sluice/internal/job"
	"sluice/internal/prompt"
)

// Template returns the text of the role's prompt; "" = the built-in one.
func (co *Collector) Template(w launch.Who, judges bool) (string, error) {
	s := co.opt.Settings()
	p, faults := prompt.Read(s, co.Root, w.Role, judges)
	if len(faults) == 0 {
		return p.Text, nil
	}
	if f, ok := errors.AsType[prompt.Fault](faults[0]); ok {
		return "", job.Fatal("role %s: the prompt %s:%d:%d: %s", w.Role, co.Shown(f.File), f.Line, f.Col, f.Message)
	}
	return "", job.Fatal("%v", faults[0])
}
