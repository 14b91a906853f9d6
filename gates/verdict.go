package gates

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/schema"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Limits of a verdict.
const (
	maxScores     = 100
	maxNames      = 64
	maxWord       = 64 // bytes of an outcome
	maxOutputTail = engine.MaxOutput
	maxInline     = 1024 // bytes of foreign text in a line of ours
	maxLabel      = 200  // bytes of a name in it
)

// VerdictInput is what a reviewer left, and what was asked.
type VerdictInput struct {
	Structured []byte // the CLI's structured field; nil if there is none
	AnswerFile []byte // the file that SLUICE_ANSWER names
	WantToken  string // this attempt's; "" = the file counts without one
	ByReply    bool   // only the last message or the structured field counts, no file
	Output     []byte // the reviewer's own last message, nothing it reviewed
	ExitCode   int
	Prompt     []byte // what it was asked, including the work

	Schema   *engine.Schema
	Allowed  []string // permitted outcomes; nil = any word
	Rubric   []string // what must be scored
	Computed bool     // the gate computes its outcome: the word may be missing
}

// ReadVerdict reads a reviewer's verdict. On an error, ask the reviewer again with it (Correction),
// at most MaxCorrections times; then use Unread. A Judgement with Inconclusive set is no verdict,
// and asking again would not help.
func ReadVerdict(in VerdictInput) (engine.Judgement, error) {
	if in.ExitCode != 0 {
		return engine.Judgement{Inconclusive: fmt.Sprintf("the reviewer ended with exit code %d", in.ExitCode)}, nil
	}
	r, seen := reply{}, error(nil)
	if len(in.Output) > MaxReply {
		seen = errLong
	} else {
		r, seen = look(in.Output, false)
	}
	all := r.verdicts(in)
	found, err := given(in)
	var j engine.Judgement
	switch {
	case err != nil:
	case found.data != nil:
		if j, err = readWhole(in, found.data); err == nil && seen != nil {
			return engine.Judgement{Inconclusive: fmt.Sprintf("%s gives a verdict, and what the reply says is unclear: %v",
				found.where, seen)}, nil
		}
	case seen != nil:
		err = seen
	case len(all) > 0:
		found, j, err = verdictOf(in, r, all)
	default:
		err = nothing(in, r)
	}
	if err != nil {
		return engine.Judgement{}, beside(in, found, err)
	}
	if why := contradiction(in, found, r, all); why != "" {
		return engine.Judgement{Inconclusive: why}, nil
	}
	if other, where := r.inWords(j.Outcome, in.Allowed); other != "" && j.Outcome != "" {
		return engine.Judgement{},
			fmt.Errorf("its verdicts differ: %s says %s in words, and %s says %s: give one", where, other, found.where,
				j.Outcome)
	}
	if r.repeats(found, in.Prompt) {
		return engine.Judgement{},
			fmt.Errorf("%s repeats what you were given to judge: give your own verdict in one block that begins with ```json",
				found.where)
	}
	j.Read = found.where
	return j, nil
}

// nothing returns why a reply has no verdict.
func nothing(in VerdictInput, r reply) error {
	if strings.TrimSpace(r.text) == "" {
		return fmt.Errorf("no verdict: %w", ErrNothing)
	}
	_, err := r.answer(func(data []byte) error {
		_, err := readWhole(in, data)
		return err
	})
	if err == nil { // an object without a judgement, where the gate computes it from nothing
		err = errNoJSON
	}
	return err
}

func readWhole(in VerdictInput, data []byte) (engine.Judgement, error) {
	if err := strictjson.Object(data, MaxAnswer); err != nil {
		return engine.Judgement{}, fmt.Errorf("the verdict: %w", err)
	}
	v, err := schema.Decode(data)
	if err != nil {
		return engine.Judgement{}, fmt.Errorf("the verdict: %w", err)
	}
	if in.Schema != nil {
		// The judgement itself is never filled in with defaults.
		if err := conform(in.Schema, v, "verdict", "score", "scores"); err != nil {
			return engine.Judgement{}, fmt.Errorf("the verdict: %w", err)
		}
	}
	whole, err := schema.Encode(v, MaxAnswer)
	if err != nil {
		return engine.Judgement{}, err
	}
	return judge(in, whole)
}

// judge reads the members of a verdict and reports all faults at once.
func judge(in VerdictInput, whole json.RawMessage) (engine.Judgement, error) {
	f, _, err := strictjson.Read(whole, MaxAnswer)
	if err != nil {
		return engine.Judgement{}, fmt.Errorf("the verdict: %w", err)
	}
	f.Exactly("verdict", "score", "scores", "feedback", "findings")
	j := engine.Judgement{Answer: whole}
	j.Outcome = outcome(f, in)
	if f.Has("score") {
		score := f.Number("score", 0, 100)
		j.Score = &score
	}
	j.Scores = scores(f)
	if len(in.Rubric) > 0 {
		j.Score = mean(f, in.Rubric, j.Scores)
	}
	j.Feedback = text.Head(f.Text("feedback", MaxAnswer), engine.MaxFeedback)
	j.Findings = findings.Of(f)
	if err := f.Err(); err != nil {
		return engine.Judgement{}, fmt.Errorf("the verdict: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return j, nil
}

func outcome(f *strictjson.Fields, in VerdictInput) string {
	if !f.Has("verdict") {
		if !in.Computed {
			f.Fault("verdict", "missing: %s", wanted(in.Allowed))
		}
		return ""
	}
	word := f.Text("verdict", maxWord)
	switch {
	case word == "": // not a text, too long or empty: only the last is not reported yet
		f.Fault("verdict", "%s", wanted(in.Allowed))
	case in.Allowed != nil && !slices.Contains(in.Allowed, word):
		near := ""
		if n := text.Nearest(word, in.Allowed); n != "" {
			near = fmt.Sprintf(" (did you mean %q?)", n)
		}
		f.Fault("verdict", "%s; found %q%s", wanted(in.Allowed), word, near)
	case !isName(word):
		f.Fault("verdict", "want one word of letters, digits, '.', '_' and '-'; found %q", text.RevealLine(word, maxWord))
	}
	return word
}

func wanted(allowed []string) string {
	if len(allowed) == 0 {
		return "want one word, such as pass or fail"
	}
	return "want one of " + strings.Join(capNames(allowed), ", ")
}

func isName(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) < 0
}

func scores(f *strictjson.Fields) map[string]float64 {
	raw := f.Raw("scores")
	if raw == nil {
		return nil
	}
	named, _, err := strictjson.Read(raw, MaxAnswer)
	if err != nil {
		f.Fault("scores", "want an object of numbers")
		return nil
	}
	keys := named.Keys()
	if len(keys) > maxScores {
		f.Fault("scores", "more than %d of them", maxScores)
		return nil
	}
	out := map[string]float64{}
	for _, key := range keys {
		if named.Has(key) {
			out[key] = named.Number(key, 0, 100)
		}
	}
	if err := named.Err(); err != nil {
		f.Fault("scores", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return out
}

// mean returns the score by a rubric: each of its lines must be scored, and nothing else counts.
func mean(f *strictjson.Fields, rubric []string, scores map[string]float64) *float64 {
	var missing []string
	sum := 0.0
	for _, r := range rubric {
		v, there := scores[r]
		if !there {
			missing = append(missing, r)
		}
		sum += v
	}
	if len(missing) > 0 {
		f.Fault("scores", "missing %s: score each of %s from 0 to 100", strings.Join(capNames(missing), ", "),
			strings.Join(capNames(rubric), ", "))
		return nil
	}
	// Down, so that 69.997 does not meet 70; 1e-6 covers what adding lost.
	v := math.Floor(sum/float64(len(rubric))*100+1e-6) / 100
	return &v
}

func capNames(names []string) []string { return names[:min(len(names), maxNames)] }

// Unread is the judgement of a reviewer whose answer stayed unreadable after all corrections.
func Unread(err error) engine.Judgement {
	return engine.Judgement{Inconclusive: "the verdict could not be read: " + text.RevealLine(err.Error(), 2*maxInline)}
}

// CommandVerdict returns the verdict of a command: exit code 0 is pass; 126, 127 and negative codes
// (not started, or ended by a signal) are inconclusive; any other code is fail, with the first line and
// the end of the output as feedback.
func CommandVerdict(exit int, output string) engine.Judgement {
	switch {
	case exit == 0:
		return engine.Judgement{Outcome: engine.OutcomePass}
	case exit < 0:
		return engine.Judgement{Inconclusive: "the reviewer's command did not start or was ended: " + lastLine(output)}
	case exit == 126 || exit == 127:
		return engine.Judgement{Inconclusive: fmt.Sprintf("the reviewer's command could not be run (exit code %d): %s",
			exit, lastLine(output))}
	}
	out := text.Tail(strings.TrimSpace(output), maxOutputTail)
	if out == "" {
		return engine.Judgement{Outcome: engine.OutcomeFail,
			Feedback: fmt.Sprintf("the reviewer's command ended with exit code %d", exit)}
	}
	first := firstLine(out)
	feedback := fmt.Sprintf("exit code %d: “%s”", exit, first)
	if said := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(out, "stdout:"), "stderr:")); said != first {
		feedback += "\n\n" + out
	}
	return engine.Judgement{Outcome: engine.OutcomeFail, Feedback: feedback}
}

// firstLine returns the first words of an output, below the name of its stream: a screen has room for few.
func firstLine(output string) string {
	for line := range strings.Lines(output) {
		line = text.RevealLine(line, maxLabel)
		if line != "" && line != "stdout:" && line != "stderr:" && !strings.HasPrefix(line, "> ") { // as npm echoes it
			return line
		}
	}
	return "no output"
}

func lastLine(output string) string { return cmp.Or(text.LastLine(output, maxLabel*2), "no output") }

// Allowed are the outcomes a reviewer may say; nil = any, where the gate computes its outcome.
func Allowed(g *engine.Gate) (outcomes []string, computed bool) {
	if len(g.Verdict.Rules) > 0 || g.Verdict.Name != nil {
		return nil, true
	}
	outcomes = []string{engine.OutcomePass, engine.OutcomeFail}
	for _, r := range g.Routes {
		if r.Outcome != engine.OutcomeBlocked {
			outcomes = append(outcomes, r.Outcome)
		}
	}
	return outcomes, false
}
