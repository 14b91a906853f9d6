package signals

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/internal/strictjson"
)

// Human is a person's decision as its file says it. What was decided is in the
// file's name: see SplitHuman.
type Human struct {
	Text  string // the words: the feedback, where it is a fail or a veto
	Round int    // which round is meant, from 1; 0 = not said
	By    string // who says so of themselves: no proof of anything
	Run   string
}

// The endings of a decision's file. A name without one is text too.
const (
	endingJSON     = ".json"
	endingMarkdown = ".md"
	endingText     = ".txt"
)

// ParseHuman reads a decision. A name that ends in .json holds an object with
// feedback (or message, or text: one of them), round, by and run; everything
// else is the words themselves, in UTF-8. An empty file is a decision without
// words. The error says why the state is not Whole.
//
// Text without a structure is whole at every character: the caller gives a file
// that may still be growing time to settle.
func ParseHuman(name string, data []byte) (Human, State, error) {
	if len(data) > MaxBytes {
		return Human{}, Bad, fmt.Errorf("decision: more than %d bytes", MaxBytes)
	}
	if strings.HasSuffix(name, endingJSON) {
		return parseHumanJSON(data)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some editors begin UTF-8 with it
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(rest):
			return Human{}, Partial, fmt.Errorf("decision: not whole: it ends after %d bytes in the middle of a character", len(data))
		case r == utf8.RuneError && size == 1:
			return Human{}, Bad, fmt.Errorf("decision: byte %d: invalid UTF-8: save the file as UTF-8", len(data)-len(rest))
		case r == 0:
			return Human{}, Bad, fmt.Errorf("decision: byte %d: NUL in a text: save the file as UTF-8", len(data)-len(rest))
		}
		rest = rest[size:]
	}
	return Human{Text: words(string(data))}, Whole, nil
}

func parseHumanJSON(data []byte) (Human, State, error) {
	if blank(data) {
		return Human{}, Whole, nil
	}
	f, state, err := strictjson.Read(data, MaxBytes)
	if err != nil {
		return Human{}, state, fmt.Errorf("decision: %w", err)
	}
	known := []string{"feedback", "message", "text", "round", "by", "run"}
	f.Exactly(known...)
	h := Human{
		Round: f.Int("round", 1, maxCounter),
		By:    words(f.Text("by", maxBy)),
		Run:   id(f, "run"),
	}
	said := ""
	for _, key := range known[:3] {
		if !f.Has(key) {
			continue
		}
		if said != "" {
			f.Fault(key, "the words are given twice: %s has them too", said)
		}
		said = key
		h.Text = words(f.Text(key, MaxBytes))
	}
	if said == "" { // a misspelt key would drop a person's words in silence
		for _, key := range f.Keys() {
			if near := Nearest(key, known[:3]); near != "" && strictjson.Fold(key) != near {
				f.Fault(clip(key), "unknown key: did you mean %s?", near)
			}
		}
	}
	if err := f.Err(); err != nil {
		return Human{}, Bad, fmt.Errorf("decision: %w", oneLine(err))
	}
	return h, Whole, nil
}

// words is a text without the line ends of another system and the space around.
func words(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

// Decision is one reading of the name of a decision's file.
type Decision struct {
	Gate    string
	Outcome string // pass, fail, veto or a route's name
}

// SplitHuman gives all readings of a file name "<gate-id>-<outcome>", with or
// without .json, .md or .txt: ids and outcomes may themselves have '-' and '.'
// in them, so only who knows the gates and their routes can choose. Readings
// with the longest gate come first; those that take the ending for a part of
// the outcome come last. None for a name that is no decision's.
func SplitHuman(name string) []Decision {
	if len(name) > 2*maxID+1+len(endingJSON) {
		return nil
	}
	var found []Decision
	for _, ending := range []string{endingJSON, endingMarkdown, endingText} {
		if stem, ok := strings.CutSuffix(name, ending); ok {
			found = split(stem)
		}
	}
	return append(found, split(name)...)
}

func split(stem string) []Decision {
	var found []Decision
	for i := len(stem) - 1; i > 0; i-- {
		if stem[i] != '-' {
			continue
		}
		if d := (Decision{Gate: stem[:i], Outcome: stem[i+1:]}); ValidID(d.Gate) && ValidID(d.Outcome) {
			found = append(found, d)
		}
	}
	return found
}
