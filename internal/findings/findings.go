// Package findings reads and cleans what is wrong with work, place by place: the findings of a
// reviewer's verdict and the line comments of a person.
package findings

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Limits of a list and of one finding.
const (
	Max         = 200
	MaxText     = 4 << 10 // bytes of a message
	MaxLine     = 100_000_000
	maxList     = 64 << 10 // bytes of the whole list
	maxFile     = 1024
	maxSeverity = 200
)

// key is the member of an object that has the list.
const key = "findings"

// Finding is one thing that is wrong.
type Finding struct {
	Severity string `json:"severity,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message,omitempty"`
}

// Place returns the finding's file and line, as file:line; "" if it names no file.
func (f Finding) Place() string {
	if f.File != "" && f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}

// File returns a file's name as it is in a finding.
func File(name string) string { return text.RevealLine(name, maxFile) }

// Of reads and cleans the member "findings" of an object, and faults what is wrong there. A plain
// text becomes a message.
func Of(f *strictjson.Fields) json.RawMessage {
	raw := f.Raw(key)
	if raw == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		f.Fault(key, "want a list")
		return nil
	}
	if len(list) > Max {
		f.Fault(key, "more than %d: give the most important ones", Max)
		return nil
	}
	out := make([]map[string]any, 0, len(list))
	for i, item := range list {
		one, err := read(item)
		if err != nil {
			f.Fault(fmt.Sprintf("%s[%d]", key, i), "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		out = append(out, one)
	}
	clean, err := encode(out)
	if err != nil {
		f.Fault(key, "%v", err)
	}
	return clean
}

// read reads one finding. It keeps unknown keys, because a gate's condition may use them.
func read(item json.RawMessage) (map[string]any, error) {
	var body string
	if json.Unmarshal(item, &body) == nil && len(item) > 0 && item[0] == '"' {
		return map[string]any{"message": text.Head(body, MaxText)}, nil
	}
	f, _, err := strictjson.Read(item, maxList)
	if err != nil {
		return nil, errors.New("want an object with severity, file, line and message")
	}
	f.Exactly("severity", "file", "line", "message")
	out := map[string]any{}
	for _, key := range f.Keys() {
		if raw := f.Raw(key); raw != nil {
			out[key] = raw
		}
	}
	for key, max := range map[string]int{"severity": maxSeverity, "file": maxFile, "message": MaxText} {
		s := f.Text(key, maxList)
		if key != "message" {
			s = text.RevealLine(s, max)
		}
		if f.Has(key) {
			out[key] = text.Head(s, max)
		}
	}
	if f.Has("line") {
		out["line"] = f.Int("line", 0, MaxLine)
	}
	return out, f.Err()
}

// encode writes a list as JSON on one line.
func encode(list any) (json.RawMessage, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(list); err != nil {
		return nil, err
	}
	if out.Len() > maxList {
		return nil, fmt.Errorf("more than %d bytes: give the most important ones", maxList)
	}
	return json.RawMessage(strings.TrimSpace(out.String())), nil
}

// Clean reads a list that came from outside; nil if it is empty.
func Clean(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("want a list, as JSON")
	}
	f, _, err := strictjson.Read(fmt.Appendf(nil, "{%q:%s}", key, raw), 2*maxList)
	if err != nil {
		return nil, err
	}
	clean := Of(f)
	if err := f.Err(); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if string(clean) == "[]" {
		clean = nil
	}
	return clean, nil
}

// Encode cleans a list and writes it as JSON; nil if it is empty.
func Encode(list []Finding) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return Clean(raw)
}

// List returns the findings of a list that was cleaned; none if they cannot be read.
func List(raw json.RawMessage) []Finding {
	var out []Finding
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, m := range list[:min(len(list), Max)] {
		var one Finding
		_ = json.Unmarshal(m["severity"], &one.Severity) // ignore other types
		_ = json.Unmarshal(m["file"], &one.File)
		_ = json.Unmarshal(m["line"], &one.Line)
		_ = json.Unmarshal(m["message"], &one.Message)
		out = append(out, one)
	}
	return out
}
