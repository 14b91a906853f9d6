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
	// MaxAnswer is the most bytes of a verdict or an answer, before and after defaults are filled
	// in.
	MaxAnswer = engine.MaxAnswer
	// MaxReply is the most bytes of an agent's last message that are searched for JSON.
	MaxReply = 1 << 20
	// MaxCorrections is how often an agent is asked again for an answer that cannot be read.
	MaxCorrections = 2

	tokenKey = "token"
)

// ErrNothing reports that there was no answer at all.
var ErrNothing = errors.New("nothing was given")

var errLong = fmt.Errorf("the reply has more than %d bytes: give a short one that ends with the JSON", MaxReply)

// Find returns the JSON that an agent answered with, from the first place that has any: the CLI's
// structured field; the answer file, if its token is this attempt's; the last message, where the
// last whole object or list that accept takes counts, whatever surrounds it. If one of the first
// two is there and wrong, that is an error; no later place replaces it.
//
// The answer file's token is its key "token", which is removed. A file with another token counts as
// missing. Without in.WantToken the file counts as it is. With in.ByReply no file counts.
func Find(in VerdictInput, accept func([]byte) error) ([]byte, error) {
	found, err := given(in)
	if err == nil && found.data == nil {
		found, err = inReply(in.Output, accept)
		err = beside(in, said{}, err)
	}
	return found.data, err
}

// given returns the structured field, or else the answer file; no data if neither counts.
func given(in VerdictInput) (said, error) {
	if s := bytes.TrimSpace(in.Structured); len(s) > 0 && string(s) != "null" {
		data, err := strict(inStructured, s)
		return said{inStructured, data}, err
	}
	if s := bytes.TrimSpace(in.AnswerFile); len(s) > 0 && !in.ByReply {
		data, _, err := inFile(s, in.WantToken)
		return said{inAnswerFile, data}, err
	}
	return said{}, nil
}

// beside adds to a reply's error why the answer file does not count.
func beside(in VerdictInput, found said, err error) error {
	s := bytes.TrimSpace(in.AnswerFile)
	if err == nil || len(s) == 0 || found.data != nil || len(bytes.TrimSpace(in.Structured)) > 0 {
		return err
	}
	if in.ByReply {
		return fmt.Errorf("the answer file does not count: the verdict is what the last message says; %w", err)
	}
	if _, why, broken := inFile(s, in.WantToken); broken == nil && why != "" {
		return fmt.Errorf("the answer file does not count: %s (write the value of SLUICE_TOKEN as its key \"token\"); %w",
			why, err)
	}
	return err
}

// inFile reads the answer file, or returns why it does not count.
func inFile(file []byte, want string) (data []byte, why string, err error) {
	data, err = strict(inAnswerFile, file)
	if err != nil || want == "" {
		return data, "", err
	}
	data, token := takeToken(data)
	switch token {
	case want:
		return data, "", nil
	case "":
		return nil, "it has no token", nil
	}
	return nil, "its token is not this attempt's", nil
}

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

// takeToken removes the token from an object and returns both.
func takeToken(data []byte) ([]byte, string) {
	var members map[string]json.RawMessage
	var token string
	if json.Unmarshal(data, &members) != nil || members[tokenKey] == nil ||
		json.Unmarshal(members[tokenKey], &token) != nil {
		return data, ""
	}
	delete(members, tokenKey)
	rest, err := json.Marshal(members)
	if err != nil {
		return data, ""
	}
	return rest, token
}

// ReadAnswer reads a step's structured answer: strict JSON of at most MaxAnswer bytes. It fills in
// the schema's defaults, then checks the schema (by; nil = any JSON). Its errors can be fed back to
// the agent (see Correction).
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

// conform fills in the schema's defaults, except for the top-level keys in never, and checks the
// schema.
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

// Correction returns the message to an agent whose answer could not be read. try counts corrections
// from 1; byReply means that no file would count.
func Correction(err error, try int, byReply bool) string {
	file := "(Or write it to the file that SLUICE_ANSWER names, with its token.) "
	if byReply {
		file = ""
	}
	left := "This is the last time you are asked."
	if try < MaxCorrections {
		left = fmt.Sprintf("You are asked at most %d times.", MaxCorrections)
	}
	return fmt.Sprintf("Your answer could not be read: %s.\n\n"+
		"Do no other work. Give the whole answer again, corrected, as one JSON object in one block that begins with "+
		"```json, and nothing after it. "+
		"%s%s\n", strings.TrimRight(text.RevealLine(err.Error(), 2*maxInline), ". "), file, left)
}
