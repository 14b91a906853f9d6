package signals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/internal/findings"
	"sluice/internal/ids"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Human is the content of a decision's file. The decision itself is in the file's name; reading
// that takes knowledge of the gates and their routes.
type Human struct {
	Text  string // the words: for a fail or a veto, the feedback
	Round int    // the round meant, from 1; 0 = not given
	By    string // self-declared: no proof of anything
	Run   string

	Gate    string // the gate it names; "" = none
	Outcome string // the decision it names; "" = none: the name decides, and must agree

	Answer   json.RawMessage // an object, nil if none: what the gate asks for
	Findings json.RawMessage // a list, cleaned: comments on files and lines
}

// The endings of a decision's file. A name without one is text too.
const (
	endingJSON     = ".json"
	endingMarkdown = ".md"
	endingText     = ".txt"
)

// ParseHuman reads a decision. A name that ends in .json, or a text that begins with {, is an
// object with feedback (or message, or text: one of them), verdict (or outcome, or decision), gate,
// round, by, run, answer and findings, and nothing else. Anything else is the words themselves, in UTF-8. An
// empty file is a decision without words. The error is why the state is not Whole.
//
// Plain text is whole at every character: the caller lets a file that may still grow settle.
func ParseHuman(name string, data []byte) (Human, State, error) {
	if len(data) > MaxBytes {
		return Human{}, Bad, fmt.Errorf("decision: more than %d bytes", MaxBytes)
	}
	if strings.HasSuffix(name, endingJSON) {
		return parseHumanJSON(data)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some editors begin UTF-8 with it
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		h, state, err := parseHumanJSON(data)
		if err != nil {
			err = fmt.Errorf("%w (a text that begins with { is read as JSON)", err)
		}
		return h, state, err
	}
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(rest):
			return Human{}, Partial,
				fmt.Errorf("decision: not whole: it ends after %d bytes in the middle of a character", len(data))
		case r == utf8.RuneError && size == 1:
			return Human{}, Bad, fmt.Errorf("decision: byte %d: invalid UTF-8: save the file as UTF-8", len(data)-len(rest))
		case r == 0:
			return Human{}, Bad, fmt.Errorf("decision: byte %d: NUL in a text: save the file as UTF-8", len(data)-len(rest))
		}
		rest = rest[size:]
	}
	return Human{Text: words(string(data))}, Whole, nil
}

// The keys of a decision in JSON. At most one of each row may have a value.
func humanWords() []string    { return []string{"feedback", "message", "text"} }
func humanOutcomes() []string { return []string{"verdict", "outcome", "decision"} }

// mostUnknown is how many unknown keys an error names.
const mostUnknown = 5

func parseHumanJSON(data []byte) (Human, State, error) {
	if blank(data) {
		return Human{}, Whole, nil
	}
	f, state, err := strictjson.Read(data, MaxBytes)
	if err != nil {
		return Human{}, state, fmt.Errorf("decision: %w", err)
	}
	known := append(append(humanWords(), humanOutcomes()...), "gate", "round", "run", "by", "answer", "findings")
	f.Exactly(known...)
	h := Human{
		Round:   f.Int("round", 1, maxCounter),
		By:      words(f.Text("by", maxBy)),
		Run:     id(f, "run", ids.ValidRun, ids.MaxRun),
		Gate:    id(f, "gate", ids.Valid, ids.Max),
		Outcome: saidOutcome(f),
	}
	if h.Answer = f.Raw("answer"); h.Answer != nil && h.Answer[0] != '{' {
		f.Fault("answer", "want an object of its properties, such as {\"replicas\": 2}")
	}
	h.Findings = findings.Of(f)
	said := ""
	for _, key := range humanWords() {
		if !f.Has(key) {
			continue
		}
		if said != "" {
			f.Fault(key, "the words are given twice: %s has them too", said)
		}
		said = key
		h.Text = words(f.Text(key, MaxBytes))
	}
	noOther(f, known)
	if err := f.Err(); err != nil {
		return Human{}, Bad, fmt.Errorf("decision: %w", oneLine(err))
	}
	return h, Whole, nil
}

// saidOutcome returns the outcome that the content names; "" if none.
func saidOutcome(f *strictjson.Fields) string {
	outcome, said := "", ""
	for _, key := range humanOutcomes() {
		if !f.Has(key) {
			continue
		}
		word := words(f.Text(key, ids.Max))
		switch {
		case word == "" && f.Err() == nil:
			f.Fault(key, "want an outcome, found an empty text")
		case said != "" && word != outcome:
			f.Fault(said, "%q and %s %q are two outcomes: say one", outcome, key, word)
		}
		outcome, said = word, key
	}
	return outcome
}

// noOther reports unknown keys as faults: an ignored key may say the opposite of what is done.
func noOther(f *strictjson.Fields, known []string) {
	var names []string
	near := ""
	for _, key := range f.Keys() {
		if !slices.ContainsFunc(known, func(k string) bool { return strictjson.Fold(k) == strictjson.Fold(key) }) {
			names, near = append(names, clip(key)), text.Nearest(key, known)
		}
	}
	all := strings.Join(names[:min(len(names), mostUnknown)], ", ")
	switch n := len(names) - mostUnknown; {
	case len(names) == 1 && near != "":
		f.Fault(all, "unknown key: did you mean %s?", near)
	case len(names) == 1:
		f.Fault(all, "unknown key: want feedback, verdict, gate, round, run, by, answer or findings")
	case n > 0:
		f.Fault(all, "and %d more: unknown keys: want feedback, verdict, gate, round, run, by, answer or findings", n)
	case len(names) > 1:
		f.Fault(all, "unknown keys: want feedback, verdict, gate, round, run, by, answer or findings")
	}
}

func words(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}
