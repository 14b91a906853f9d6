package folders

import (
	"strings"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
)

// Inputs returns a step's input files, as seen from its folder.
func (x *Folders) Inputs(j job.Job, st *engine.Step, dir string) (found, missing []string, err error) {
	if len(st.Inputs) == 0 {
		return nil, nil, nil
	}
	patterns, err := job.Texts(st.Inputs, j.Env, "input")
	if err != nil {
		return nil, nil, err
	}
	for i, p := range patterns {
		patterns[i] = engine.InRetryDir(p, j.RunInfo.RetryDir)
	}
	found, missing, err = gates.Expand(x.Root, dir, patterns)
	if err != nil {
		return nil, nil, job.Refused("%v", err)
	}
	return found, missing, nil
}

func (x *Folders) missingInputs(missing []string, dir string) error {
	if len(missing) == 0 {
		return nil
	}
	verb := "is"
	if len(missing) > 1 {
		verb = "are"
	}
	where := "the root of the repo"
	if dir != x.Root {
		where = x.Shown(dir) + "/ and " + where
	}
	return job.Refused("input %s %s missing: looked in %s", strings.Join(missing, ", "), verb, where)
}
