package job

import (
	"sluice/engine"
	"sluice/internal/stub"
)

// StandIn is the command of sluice that plays an agent's part, and the name it is shown by.
const StandIn = "stub"

// Script returns what stands in for the agents of the job's run; nil in a real run.
func Script(j Job) (*stub.Script, error) {
	if len(j.RunInfo.Stubs) == 0 {
		return nil, nil
	}
	s, err := stub.Read(j.RunInfo.Stubs)
	if err != nil {
		return nil, Fatal("%v: start the run again", err)
	}
	return s, nil
}

// StandsIn reports whether a stand-in carries out the step's attempt, and no agent or command of the spec.
func StandsIn(j Job, st *engine.Step) bool {
	s, err := Script(j)
	switch {
	case s == nil, err != nil, j.Attempt == nil, j.Attempt.Offered:
		return false
	case st.Run == nil, !s.Runs():
		return true
	}
	t := Turn(j, j.Attempt.N, 0)
	t.Step = st.ID
	_, scripted := s.Play(t)
	return scripted
}

// Turn is whose turn it is in the job's run: in the n-th attempt of a step, or round of a gate.
func Turn(j Job, n, try int) stub.Turn {
	t := stub.Turn{N: n, Nth: j.Nth, Again: launchedBefore(j, try)}
	for _, c := range j.RunInfo.Tasks {
		task := stub.Task{ID: c.ID, Tries: max(c.Try, 1) - 1}
		if c.Own {
			t.N, task.Tries = n+task.Tries, 0
		}
		t.Tasks = append(t.Tasks, task)
	}
	return t
}

// launchedBefore counts how often the job's process was launched for the same before; try is which correction of its answer.
func launchedBefore(j Job, try int) int {
	k := j.K
	if j.Proc != nil {
		k = j.Proc.K
	}
	return max(k, 1) - 1 + try
}
