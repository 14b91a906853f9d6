package job

import (
	"sluice/engine"
	"sluice/internal/stub"
)

// StandIn is sluice's command that plays an agent, and the name shown for it.
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

// StandsIn reports whether a stand-in carries out the step's attempt, instead of the spec's agent
// or command. A script that cannot be read stands in for nothing; see Script for its error.
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

// Turn returns the place in a stand-in's script for the n-th attempt of a step, or round of a gate;
// try is which correction of its answer, from 0.
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

// launchedBefore counts the earlier launches of the same attempt or round, with its try
// corrections.
func launchedBefore(j Job, try int) int {
	k := j.K
	if j.Proc != nil {
		k = j.Proc.K
	}
	return max(k, 1) - 1 + try
}
