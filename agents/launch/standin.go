package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/stub"
)

// StepPlayer returns who carries out a step's launch, which works in dir and has its files in rel: its
// agent, or a stand-in with its part.
func (ls *Launches) StepPlayer(j job.Job, st *engine.Step, dir, rel string, try int) (Who, error) {
	w := ls.Whose(st.Role(), j.Turn)
	s, err := job.Script(j)
	if s == nil || err != nil {
		return w, err
	}
	t := job.Turn(j, j.Attempt.N, try)
	t.Role, t.Step = st.Role(), st.ID
	if c := j.RunInfo.Child; c != nil && j.Spec.Inline { // a task's tries are runs of their own
		t.N = c.Try
	}
	play, _ := s.Play(t)
	part, err := stepPart(ls.Root, j, st, dir, play,
		fmt.Sprintf("%s for %s: step %s, attempt %d", job.StandIn, w.Role, st.ID, j.Attempt.N))
	if err != nil {
		return w, err
	}
	return ls.standIn(w, rel, part)
}

// ReviewPlayer returns who carries out a review: the gate's reviewer, or a stand-in with its part.
func (ls *Launches) ReviewPlayer(j job.Job, g *engine.Gate, rel string, try int) (Who, error) {
	w := ls.Whose(g.Reviewer.AgentType, j.Turn)
	s, err := job.Script(j)
	if s == nil || err != nil {
		return w, err
	}
	t := job.Turn(j, j.Round.N, try)
	t.Role, t.Gate = g.Reviewer.AgentType, g.ID
	play, _ := s.Play(t)
	return ls.standIn(w, rel,
		reviewPart(g, play, fmt.Sprintf("%s for %s: gate %s, round %d", job.StandIn, w.Role, g.ID, j.Round.N)))
}

// Command returns the arguments of a command of the spec or, in a run with stand-ins, of one that
// plays it. rel is the folder of its files, t whose turn it is, and dir where a step works: its stand-in
// does what the spec asks of any agent.
func (ls *Launches) Command(j job.Job, c *engine.Command, env *engine.Env, rel string, t stub.Turn,
	dir string) ([]string, error) {
	argv, err := job.CommandLine(c, env)
	if err != nil {
		return nil, err
	}
	s, err := job.Script(j)
	if s == nil || err != nil {
		return argv, err
	}
	play, scripted := s.Play(t)
	if s.Runs() && !scripted {
		return argv, nil
	}
	label := job.StandIn + ": not run: " + strings.Join(argv, " ")
	part := partOf(play, label)
	if t.Step != "" {
		if part, err = stepPart(ls.Root, j, j.Spec.Step(t.Step), dir, play, label); err != nil {
			return nil, err
		}
	}
	if play.Verdict != "" && play.Verdict != engine.OutcomePass {
		part.Say, part.Exit = cmp.Or(play.Feedback, part.Say), max(part.Exit, 1)
	}
	w, err := ls.standIn(Who{}, rel, part)
	return w.Agent.Command, err
}

// standIn writes a part beside the launch's files and returns its player: in the role's place,
// without its agents' models, keys and network.
func (ls *Launches) standIn(w Who, rel string, part stub.Part) (Who, error) {
	if ls.Cage.opt.Self == "" {
		return w, job.Fatal("the run uses stubs, and this process cannot start any")
	}
	data, err := json.MarshalIndent(part, "", "  ")
	if err != nil {
		return w, err
	}
	if err := ls.WriteFile(rel+"/"+stub.PartFile, append(data, '\n')); err != nil {
		return w, err
	}
	format := settings.FormatText
	if part.Fail == stub.Limit {
		format = program.StandIns
	}
	out := Who{Name: job.StandIn, Role: w.Role, Set: w.Set, Known: true, Stub: true}
	out.Set.Args = nil
	out.Set.Agent, out.Set.Model, out.Set.Env, out.Set.Network = []string{job.StandIn}, "", nil,
		[]string{settings.NetworkNone}
	out.Agent = settings.Agent{Command: []string{ls.Cage.opt.Self, job.StandIn,
		filepath.Join(ls.Path(rel), stub.PartFile)}, PromptVia: settings.ViaFile, Format: format}
	return out, nil
}

// partOf returns what a part has whatever it is of. It says the label, unless the play has its words.
func partOf(play stub.Play, label string) stub.Part {
	return stub.Part{Takes: play.Takes, Fail: play.Fail, ResetIn: play.ResetIn, Exit: play.Exit,
		Say: *cmp.Or(play.Say, &label)}
}

// stepPart returns what a stand-in does for a step: what the play says, and what the spec asks of
// any agent.
func stepPart(root string, j job.Job, st *engine.Step, dir string, play stub.Play, label string) (stub.Part, error) {
	part := partOf(play, label)
	part.Answer, part.Ask = play.Answer, play.Question
	part.Signal, part.Summary = cmp.Or(play.Signal, engine.StatusDone), cmp.Or(play.Summary, label)
	env := job.WithAttempt(j, st)
	made, _, err := job.Outputs(st.Outputs, env)
	if err != nil {
		return part, err
	}
	for _, c := range st.Criteria {
		if c.File != "" && !st.Reads() {
			made = append(made, c.File)
		}
	}
	for _, p := range made {
		if _, scripted := play.Write[p]; !scripted && part.Signal == engine.StatusDone {
			part.Write = append(part.Write, stub.File{Path: p, Text: placeholder(p, label), New: true})
		}
	}
	for p, text := range play.Write {
		if text != nil {
			part.Write = append(part.Write, stub.File{Path: p, Text: *text})
		}
	}
	slices.SortFunc(part.Write, func(x, y stub.File) int { return strings.Compare(x.Path, y.Path) })
	for i, f := range part.Write {
		base := dir
		if layout.IsState(f.Path) {
			base = root
		}
		if part.Write[i].Path, err = layout.Under(base, f.Path); err != nil {
			return part, job.Refused("%s: write: %v", job.StandIn, err)
		}
	}
	switch {
	case play.Say != nil && part.Answer == nil: // its last words, whatever the spec wants
	case part.Answer == nil && st.Answer != nil && st.Signal.Type == engine.SignalFile && saysNotDone(part):
	case part.Answer == nil && st.Answer != nil:
		part.Answer = stub.Least(st.Answer.Source)
	case st.Answer == nil:
		part.Keep = part.Answer != nil
	}
	by := st.Signal.Type
	if by == engine.SignalCommit && part.Signal == engine.StatusDone {
		part.Commit = label + "\n\n" + st.Signal.Value
	}
	if by != engine.SignalFile && saysNotDone(part) && part.Exit == 0 {
		part = inAnswer(part, st.Answer)
		if by != engine.SignalExit {
			part.Exit = 0 // another code would be a crash; without its commit it has failed
		}
	}
	return part, nil
}

// saysNotDone reports whether the part's status is failed or blocked.
func saysNotDone(part stub.Part) bool {
	return part.Signal == engine.StatusFailed || part.Signal == engine.StatusBlocked
}

// inAnswer puts a sentinel's words into the part's answer, as many as the schema allows. If it
// allows no status, the exit code reports the failure.
func inAnswer(part stub.Part, by *engine.Schema) stub.Part {
	own := part.Answer
	if own == nil && by != nil {
		own = stub.Least(by.Source)
	}
	for _, keys := range [][]string{{"status", "summary", "question"}, {"status", "question"}, {"status"}} {
		answer := map[string]any{}
		if own != nil && json.Unmarshal(own, &answer) != nil {
			break // no object
		}
		for _, key := range keys {
			if text := map[string]string{"status": part.Signal, "summary": part.Summary, "question": part.Ask}[key]; text != "" {
				answer[key] = text
			}
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			break
		}
		if _, err = gates.ReadAnswer(raw, by); err == nil {
			part.Answer, part.Keep = raw, true
			return part
		}
	}
	part.Exit = 1
	if part.Say += "\n" + part.Summary; part.Signal == engine.StatusBlocked {
		part.Say += "\nsignal: blocked: the schema of the step's answer has no room for \"status\": \"blocked\", by which " +
			"an agent would say it: " + part.Ask
	}
	return part
}

func placeholder(path, label string) string {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return "{}\n"
	}
	return label + "\n"
}

// reviewPart returns what a stand-in says as the reviewer.
func reviewPart(g *engine.Gate, play stub.Play, label string) stub.Part {
	part := partOf(play, label)
	if play.Answer == nil {
		judges := play.Verdict != "" || play.Score != nil || play.Scores != nil
		if play.Say == nil || judges {
			part.Answer = verdictOf(g, play, label)
		}
		return part
	}
	part.Answer = play.Answer
	var own map[string]any
	if play.Feedback == "" || json.Unmarshal(part.Answer, &own) != nil {
		return part
	}
	own["feedback"] = play.Feedback
	if raw, err := json.Marshal(own); err == nil {
		part.Answer = raw
	}
	return part
}

const agreed = 100.0

// verdictOf returns the play's verdict; pass if it has none.
func verdictOf(g *engine.Gate, play stub.Play, label string) json.RawMessage {
	v := map[string]any{}
	if g.Answer != nil {
		_ = json.Unmarshal(stub.Least(g.Answer.Source), &v) // no object: a bad answer
	}
	closed := closedSchema(g.Answer)
	set := func(key string, value any) {
		if _, there := v[key]; there || !closed {
			v[key] = value
		}
	}
	set("feedback", cmp.Or(play.Feedback, label+": nothing was looked at"))
	if _, computed := gates.Allowed(g); !computed || play.Verdict != "" {
		set("verdict", cmp.Or(play.Verdict, engine.OutcomePass))
	}
	score := agreed
	if play.Score != nil {
		score = *play.Score
	}
	if len(g.Reviewer.Rubric) > 0 {
		scores := map[string]float64{}
		for _, r := range g.Reviewer.Rubric {
			scores[r] = score
			if own, ok := play.Scores[r]; ok {
				scores[r] = own
			}
		}
		set("scores", scores)
	} else {
		set("score", score)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// closedSchema reports whether an answer may have only the keys of its schema.
func closedSchema(s *engine.Schema) bool {
	var own struct {
		Additional any `json:"additionalProperties"`
	}
	return s != nil && json.Unmarshal(s.Source, &own) == nil && own.Additional == false
}
