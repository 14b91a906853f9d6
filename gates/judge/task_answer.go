package judge

import (
	"encoding/json"
	"fmt"
	"strconv"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
	"sluice/internal/text"
)

// ReadAnswer checks an answer against the step's schema, and a task's answer against the task: a
// summary that names another task describes work nobody asked for.
func ReadAnswer(j job.Job, st *engine.Step, data []byte) (json.RawMessage, error) {
	out, err := gates.ReadAnswer(data, st.Answer)
	c := j.RunInfo.Child
	if err != nil || c == nil || c.Task == "" || !j.Spec.Inline {
		return out, err
	}
	var said struct {
		Task *string `json:"task_id"`
	}
	if json.Unmarshal(out, &said) == nil && said.Task != nil && *said.Task != c.Task {
		return nil, fmt.Errorf("its task_id is %s, and the task that was given is %s: do that one, and name it",
			strconv.Quote(text.Clip(*said.Task, maxShownID)), c.Task)
	}
	return out, nil
}

const maxShownID = 64
