package gates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sluice/engine"
	"sluice/internal/schema"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

const (
	// MaxAnswer is how many bytes a verdict or an answer may have, as it came and when its defaults are filled in.
	MaxAnswer = engine.MaxAnswer
	// MaxReply is how many bytes of an agent's last words are looked through for JSON.
	MaxReply = 1 << 20
	// MaxCorrections is how often an agent is asked again for an answer that cannot be read.
	MaxCorrections = 2

	tokenKey = "token"
)

// ErrNothing says that nothing was given that could be an answer.
var ErrNothing = errors.New("nothing was given")

var errLong = fmt.Errorf("the reply has more than %d bytes: give a short one that ends with the JSON", MaxReply)

// Find gives the JSON that an agent answered with, from the first place that has any: the CLI's own structured field; the
// answer file, if its token is this attempt's; its last words, in which the last whole object or list counts that accept
// takes, whatever stands around it. Of the first two, one that is there and wrong is an error: what was said elsewhere does
// not stand in for it.
//
// The answer file's token is in.AnswerToken, or, where that is empty, the file's own key "token", which is taken out.
// A file with another token counts as not there. Where in.WantToken is empty, the file counts as it is. Where in.ByReply
// is set, no file counts.
func Find(in VerdictInput, accept func([]byte) error) ([]byte, error) {
	found, err := given(in)
	if err == nil && found.data == nil {
		found, err = inReply(in.Output, accept)
		err = beside(in, said{}, err)
	}
	return found.data, err
}

// given is what stands in the structured field, else in the answer file; without data where neither counts.
func given(in VerdictInput) (said, error) {
	if s := bytes.TrimSpace(in.Structured); len(s) > 0 && string(s) != "null" {
		data, err := strict(inStructured, s)
		return said{inStructured, data}, err
	}
	if s := bytes.TrimSpace(in.AnswerFile); len(s) > 0 && !in.ByReply {
		data, _, err := inFile(s, in)
		return said{inAnswerFile, data}, err
	}
	return said{}, nil
}

// beside adds to the fault of a reply why the answer file that lies beside it does not count.
func beside(in VerdictInput, found said, err error) error {
	s := bytes.TrimSpace(in.AnswerFile)
	if err == nil || len(s) == 0 || found.data != nil || len(bytes.TrimSpace(in.Structured)) > 0 {
		return err
	}
	if in.ByReply {
		return fmt.Errorf("the answer file does not count: the verdict is what the last message says; %w", err)
	}
	if _, why, broken := inFile(s, in); broken == nil && why != "" {
		return fmt.Errorf("the answer file does not count: %s (write the value of SLUICE_TOKEN as its key \"token\"); %w", why, err)
	}
	return err
}

// inFile reads the answer file, or says why it does not count.
func inFile(file []byte, in VerdictInput) (data []byte, why string, err error) {
	const another = "its token is not this attempt's"
	if in.WantToken != "" && in.AnswerToken != "" && in.AnswerToken != in.WantToken {
		return nil, another, nil
	}
	if data, err = strict(inAnswerFile, file); err != nil {
		return nil, "", err
	}
	if in.WantToken == "" {
		return data, "", nil
	}
	data, token := takeToken(data)
	switch {
	case token == in.WantToken || token == "" && in.AnswerToken != "":
		return data, "", nil
	case token == "":
		return nil, "it has no token", nil
	}
	return nil, another, nil
}

// inReply finds the answer in an agent's last words.
func inReply(output []byte, accept func([]byte) error) (said, error) {
	switch {
	case len(output) > MaxReply:
		return said{}, errLong
	case len(bytes.TrimSpace(output)) == 0:
		return said{}, ErrNothing
	}
	r, err := look(output, true)
	if err != nil {
		return said{}, err
	}
	return r.answer(accept)
}

func strict(where string, data []byte) ([]byte, error) {
	if _, err := strictjson.Check(data, MaxAnswer); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return data, nil
}

// takeToken takes the token out of an object that has one.
func takeToken(data []byte) ([]byte, string) {
	var members map[string]json.RawMessage
	var token string
	if json.Unmarshal(data, &members) != nil || members[tokenKey] == nil || json.Unmarshal(members[tokenKey], &token) != nil {
		return data, ""
	}
	delete(members, tokenKey)
	rest, err := json.Marshal(members)
	if err != nil {
		return data, ""
	}
	return rest, token
}

// ReadAnswer reads a step's structured answer: strict JSON of at most MaxAnswer bytes, what is missing filled in from
// the schema's defaults, then held against the schema (by; nil = any JSON). An error says what is wrong in words that can
// be fed back (see Correction).
func ReadAnswer(data []byte, by *engine.Schema) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, fmt.Errorf("the answer: %w", ErrNothing)
	}
	if _, err := strict("the answer", data); err != nil {
		return nil, err
	}
	v, err := schema.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	if by != nil {
		if err := conform(by, v); err != nil {
			return nil, fmt.Errorf("the answer: %w", err)
		}
	}
	return schema.Encode(v, MaxAnswer)
}

// conform fills v in from the schema's defaults, but for the top-level keys in never, and holds it against the schema.
func conform(by *engine.Schema, v any, never ...string) error {
	s, err := schema.Compile(by.Source)
	if err != nil {
		return fmt.Errorf("schema: %s", text.Reveal(err.Error()))
	}
	if err := s.Conform(v, never...); err != nil {
		return errors.New(text.Reveal(err.Error()))
	}
	return nil
}

// Correction is what an agent is told when its answer could not be read: try is which correction this is, from 1; byReply
// says that no file would count.
func Correction(err error, try int, byReply bool) string {
	file := "(Or write it to the file that SLUICE_ANSWER names, with its token.) "
	if byReply {
		file = ""
	}
	left := "This is the last time you are asked."
	if try < MaxCorrections {
		left = fmt.Sprintf("You are asked %d times at the most.", MaxCorrections)
	}
	return fmt.Sprintf("Your answer could not be read: %s.\n\n"+
		"Do no other work. Give the whole answer again, corrected, as one JSON object in one block that begins with ```json, and nothing after it. "+
		"%s%s\n", strings.TrimRight(text.RevealLine(err.Error(), 2*maxInline), ". "), file, left)
}
